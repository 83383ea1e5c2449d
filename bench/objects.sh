#!/usr/bin/env bash
# Reads one object in ranges of 8 MiB, by turns with `curl --parallel`, from the tests' fake server on loopback.
# Prints the median rates, their ratio, and CPU time of the readers and the server.
#
#     bench/objects.sh BUILD_FOLDER [MIB [ROUNDS]]
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$1 mib=${2:-1024} rounds=${3:-5}
folder=$(mktemp -d)
trap 'exec 3>&-; rm -rf "$folder"' EXIT

mkfifo "$folder/commands"
python3 -B "$here/../tests/object/fake_s3.py" <"$folder/commands" >"$folder/answers" &
server=$!
exec 3>"$folder/commands"
echo "zeros kv k $((mib << 20))" >&3
until [[ $(wc -l <"$folder/answers") -ge 2 ]]; do sleep 0.1; done
url=http://127.0.0.1:$(head -n 1 "$folder/answers")
export AWS_ENDPOINT_URL=$url AWS_ACCESS_KEY_ID=FAKEKEY AWS_SECRET_ACCESS_KEY=fakesecret

{
  printf 'parallel\nparallel-max = 16\n'
  for ((i = 0; i < mib / 8; i++)); do
    ((i == 0)) || echo next
    printf 'url = "%s/kv/k"\nrange = "%d-%d"\noutput = "/dev/null"\nsilent\nfail\n' "$url" $((i << 23)) $((((i + 1) << 23) - 1))
    printf 'user = "FAKEKEY:fakesecret"\naws-sigv4 = "aws:amz:us-east-1:s3"\n'
    printf 'header = "x-amz-content-sha256: UNSIGNED-PAYLOAD"\n'
  done
} >"$folder/ranges"

cpu_of() { awk '{print ($14 + $15) / 100}' "/proc/$1/stat"; }
for ((round = 0; round < rounds; round++)); do
  before=$(cpu_of $server)
  "$build/bench/object_bench" read s3://kv/k $((mib << 20)) 1 >"$folder/ours"
  between=$(cpu_of $server)
  TIMEFORMAT='%R %U %S'
  { time curl -K "$folder/ranges"; } 2>"$folder/curl"
  after=$(cpu_of $server)
  awk -v mib="$mib" -v round=$round -v s="$before $between $after" '
    FNR == NR { ours = $1; cpu = $3; next }
    { split(s, server); theirs = mib * 1048576 / $1 * 1e-9
      printf "%d: viaduct %.3f GB/s, %.2f s CPU (server %.2f s); curl %.3f GB/s, %.2f s CPU (server %.2f s)\n",
             round, ours, cpu, server[2] - server[1], theirs, $2 + $3, server[3] - server[2] }' \
    "$folder/ours" "$folder/curl" | tee -a "$folder/rows"
done
awk '{ ours[NR] = $3; theirs[NR] = $11; ratio[NR] = $3 / $11 }
  function median(list, n,   copy, i, j, t) {
    for (i = 1; i <= n; i++) copy[i] = list[i]
    for (i = 1; i < n; i++) for (j = i + 1; j <= n; j++) if (copy[j] < copy[i]) { t = copy[i]; copy[i] = copy[j]; copy[j] = t }
    return n % 2 ? copy[(n + 1) / 2] : (copy[n / 2] + copy[n / 2 + 1]) / 2
  }
  END { printf "median: viaduct %.3f GB/s, curl %.3f GB/s, ratio %.2f\n", median(ours, NR), median(theirs, NR), median(ratio, NR) }' \
  "$folder/rows"
