#!/usr/bin/env bash
# Instructions per post of each hot path, counted by callgrind. The figure is the difference between
# a long and a short run, so opening and connecting do not count. The machine's load does not change
# it.
# Usage: bench/instructions.sh [PATH-TO-hot_paths]
set -euo pipefail
program=${1:-$(dirname "$0")/../build/release/bench/hot_paths}
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

count() {  # path times
  valgrind --tool=callgrind --callgrind-out-file="$work/out" "$program" "$1" "$2" 2>"$work/said" >/dev/null ||
    { cat "$work/said" >&2; exit 1; }
  sed -n 's/^.*Collected : \([0-9]*\).*$/\1/p' "$work/said"
}

printf '%-16s %10s %22s\n' path blocks 'instructions per post'
for row in local-8:1 local-64x64:64 local-1024x64:1024 tcp-8:1 tcp-64x64:64 tcp-1024x64:1024 \
  ofi-8:1 ofi-64x64:64 ofi-1024x64:1024 note:0; do
  path=${row%:*}
  short=$(count "$path" 200)
  long=$(count "$path" 1200)
  printf '%-16s %10s %22s\n' "$path" "${row#*:}" $(((long - short) / 1000))
done
