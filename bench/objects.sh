#!/usr/bin/env bash
# Reads one object in ranges of 8 MiB, by turns with `curl --parallel`, from the tests' fake server on loopback. curl
# stores the bytes in memory files (/dev/shm), or drops them (/dev/null); Viaduct stores them in memory. Prints the
# rates and CPU times of each round, and medians.
#
#     bench/objects.sh BUILD_FOLDER [MIB [ROUNDS]]
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$1 mib=${2:-512} rounds=${3:-5}
folder=$(mktemp -d) stored=$(mktemp -d /dev/shm/objects.XXXXXX)
trap 'exec 3>&-; rm -rf "$folder" "$stored"' EXIT

mkfifo "$folder/commands"
python3 -B "$here/../tests/object/fake_s3.py" <"$folder/commands" >"$folder/answers" &
server=$!
exec 3>"$folder/commands"
echo "zeros kv k $((mib << 20))" >&3
until [[ $(wc -l <"$folder/answers") -ge 2 ]]; do sleep 0.1; done
url=http://127.0.0.1:$(head -n 1 "$folder/answers")
export AWS_ENDPOINT_URL=$url AWS_ACCESS_KEY_ID=FAKEKEY AWS_SECRET_ACCESS_KEY=fakesecret

# ranges_into DROP: curl's options for all ranges.
ranges_into() {
  local i to=/dev/null
  printf 'parallel\nparallel-max = 16\n'
  for ((i = 0; i < mib / 8; i++)); do
    ((i == 0)) || echo next
    [[ $1 == drop ]] || to=$stored/$i
    printf 'url = "%s/kv/k"\nrange = "%d-%d"\noutput = "%s"\nsilent\nfail\n' \
      "$url" $((i << 23)) $((((i + 1) << 23) - 1)) "$to"
    printf 'user = "FAKEKEY:fakesecret"\naws-sigv4 = "aws:amz:us-east-1:s3"\n'
    printf 'header = "x-amz-content-sha256: UNSIGNED-PAYLOAD"\n'
  done
}
ranges_into drop >"$folder/drop"
ranges_into store >"$folder/store"

cpu_of_server() { awk '{ print ($14 + $15) / 100 }' "/proc/$server/stat"; }
# run_curl KIND: "RATE CPU".
run_curl() {
  local TIMEFORMAT='%R %U %S'
  { time curl -K "$folder/$1" 2>/dev/null; } 2>"$folder/time"
  rm -f "$stored"/*
  awk -v mib="$mib" '{ printf "%.3f %.2f\n", mib * 1.048576e-3 / $1, $2 + $3 }' "$folder/time"
}
run_viaduct() {
  "$build/bench/object_bench" read s3://kv/k $((mib << 20)) 1 | awk '{ print $1, $3 }'
}
for ((round = 0; round < rounds; round++)); do
  for kind in viaduct store drop; do
    before=$(cpu_of_server)
    if [[ $kind == viaduct ]]; then row=$(run_viaduct); else row=$(run_curl $kind); fi
    echo "$round $kind $row $(awk -v a="$before" -v b="$(cpu_of_server)" 'BEGIN { printf "%.2f", b - a }')"
  done
done | tee "$folder/rows"

python3 -B - "$folder/rows" <<'PY'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
def of(kind, column):
    return [float(row[column]) for row in rows if row[1] == kind]
for kind in ("viaduct", "store", "drop"):
    print(f"{kind:8} {statistics.median(of(kind, 2)):.3f} GB/s, {statistics.median(of(kind, 3)):.2f} s CPU, "
          f"server {statistics.median(of(kind, 4)):.2f} s CPU")
for kind in ("store", "drop"):
    ratios = [ours / theirs for ours, theirs in zip(of("viaduct", 2), of(kind, 2))]
    print(f"viaduct / curl ({kind}): {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")
PY
