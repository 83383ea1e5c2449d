#!/usr/bin/env bash
# Lets clang check (-Wthread-safety) that each function holds the locks that it needs, in every
# source and header with an annotation of base/mutex.h.
#
#   tools/check_locks.sh [ROOT]
#
# exit: 0 all hold the locks they need; 1 one does not; 77 skipped, because there is no clang++ 14 or newer.
set -euo pipefail
cd -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/..}"

find_clang() {
  local name version
  for name in clang++ clang++-{22,21,20,19,18,17,16,15,14}; do
    command -v "$name" >/dev/null || continue
    version=$("$name" -dumpversion)
    if ((${version%%.*} >= 14)); then echo "$name" && return; fi
  done
}

# A header that has a source file is checked with it.
annotated() {
  grep -rlE --include='*.h' --include='*.cc' 'VIADUCT_(GUARDED_BY|REQUIRES|ACQUIRE|EXCLUDES)' src |
    while read -r file; do
      if [[ -e ${file%.h}.cc ]]; then echo "${file%.h}.cc"; else echo "$file"; fi
    done | sort -u
}

clang=$(find_clang)
[[ -n $clang ]] || {
  echo "skipped: no clang++ 14 or newer"
  exit 77
}
mapfile -t files < <(annotated)
((${#files[@]} > 0)) || {
  echo "no file under src says which locks it needs" >&2
  exit 1
}
printf '%s: %s\n' "$clang" "${files[*]}"
failed=0
for file in "${files[@]}"; do
  "$clang" -x c++ -std=c++20 -Iinclude -Isrc -fsyntax-only -Wno-pragma-once-outside-header \
    -Wthread-safety -Wthread-safety-beta -Werror=thread-safety -Werror=thread-safety-beta "$file" || failed=1
done
exit $failed
