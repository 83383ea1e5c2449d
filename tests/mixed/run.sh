#!/usr/bin/env bash
# Runs two processes together, one of this version and one of the last release: over each backend,
# write and read, each as the initiator once. They move blocks with checked contents, or both end
# with an error that names the versions.
#
#   tests/mixed/run.sh BUILD      a build folder with the program `viaduct` of this version
#
# exit: 0 all did so; 1 one did not; 77 skipped, because there is no last release.
# VIADUCT_LAST=REVISION replaces the newest tag v*. VIADUCT_MIXED_SECONDS (120) limits the time of a
# pair.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
this=$(realpath -- "${1:?usage: run.sh BUILD}")/apps/viaduct/viaduct
seconds=${VIADUCT_MIXED_SECONDS:-120}

last_tag() { git tag --list 'v*' --sort=-version:refname --no-contains HEAD | head -n 1; }
last=${VIADUCT_LAST:-$(last_tag)}
unset "${!VIADUCT_@}"
[[ -n $last ]] || {
  echo "skipped: no tag v* names the last release; VIADUCT_LAST=REVISION names one"
  exit 77
}
commit=$(git rev-parse --verify --quiet "$last^{commit}") || {
  echo "there is no revision $last here" >&2
  exit 1
}
work=$PWD/build/mixed/$commit
old=$work/build/apps/viaduct/viaduct

build_last() {
  rm -rf -- "$work/source"
  mkdir -p -- "$work/source"
  git archive "$commit" | tar -x -C "$work/source"
  local launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake -G Ninja -S "$work/source" -B "$work/build" "${launcher[@]}" -DCMAKE_BUILD_TYPE=Release \
    -DVIADUCT_TESTS=OFF -DVIADUCT_BENCH=OFF -DVIADUCT_WERROR=OFF -DVIADUCT_MERGE=ON
  cmake --build "$work/build" -j "$(nproc)" --target viaduct_cli
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# pair BACKEND OP INITIATOR TARGET: succeeds if they moved blocks, or if both said why they do not.
pair() {
  local arguments=(bench --meet "127.0.0.1:$(free_port)" --meet-timeout 30s --backend "$1"
    --require "backend:$1" --op "$2" --block-sizes "4KiB,64KiB,4MiB" --iterations 16)
  local first codes=(0 0)
  timeout "$seconds" "$3" "${arguments[@]}" --rank 0 >"$work/rank0" 2>&1 &
  first=$!
  timeout "$seconds" "$4" "${arguments[@]}" --rank 1 >"$work/rank1" 2>&1 || codes[1]=$?
  wait $first || codes[0]=$?
  if grep -qs 'not built in' "$work/rank0" "$work/rank1"; then
    echo "skipped: not built in"
  elif [[ ${codes[*]} == "0 0" ]]; then
    echo "moved"
  elif [[ ! ${codes[*]} =~ 124 ]] && grep -qs 'version' "$work/rank0" && grep -qs 'version' "$work/rank1"; then
    echo "refused: $(grep -h -m 1 'version' "$work/rank0")"
  else
    echo "FAILED: exit codes ${codes[*]}"
    cat "$work/rank0" "$work/rank1"
    return 1
  fi
}

mkdir -p build/mixed
build_last >"$work.log" 2>&1 || {
  cat "$work.log" >&2
  exit 1
}
code=0
for backend in local tcp ofi ucx; do
  for op in write read; do
    for initiator in "$old" "$this"; do
      if [[ $initiator == "$old" ]]; then who=$last target=$this; else who="this version" target=$old; fi
      said=$(pair $backend $op "$initiator" "$target") || code=1
      echo "$backend $op, $who initiates: $said"
    done
  done
done
exit $code
