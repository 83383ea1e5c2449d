#!/usr/bin/env bash
# The throughput of pairs of hosts over links of a known rate, beside iperf3 over the same links.
# Hosts are network namespaces on one bridge; `tc tbf` limits every link in both directions.
#
# usage: links.sh VIADUCT [RATE [MEMBERS ...]]     as root; RATE in Mbit, 200 when none is given
set -euo pipefail
viaduct=$(realpath "$1")
rate=${2:-200}
shift $(($# < 2 ? $# : 2))
(($#)) || set -- 2 4 8 16
work=$(mktemp -d)
name=vl$$
trap 'cleanup' EXIT

cleanup() {
  jobs -p | xargs -r kill 2>/dev/null || true
  wait 2>/dev/null || true
  for ns in $(ip netns list | awk -v n="$name" 'index($1, n) == 1 {print $1}'); do
    ip netns del "$ns"
  done
  rm -rf "$work"
}

limit() { ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "${rate}mbit" burst 64kb latency 50ms; }

hosts() { # 10.79.0.1, 10.79.0.2, ...
  ip netns add "${name}b"
  ip -n "${name}b" link add br0 type bridge
  ip -n "${name}b" link set br0 up
  local i
  for ((i = 1; i <= $1; ++i)); do
    ip netns add "$name$i"
    ip -n "$name$i" link set lo up
    ip -n "$name$i" link add net0 type veth peer name "p$i" netns "${name}b"
    ip -n "$name$i" address add "10.79.0.$i/24" dev net0
    ip -n "$name$i" link set net0 up
    ip -n "${name}b" link set "p$i" master br0 up
    limit "$name$i" net0
    limit "${name}b" "p$i"
  done
}

no_hosts() {
  local ns
  for ns in $(ip netns list | awk -v n="$name" 'index($1, n) == 1 {print $1}'); do
    ip netns del "$ns"
  done
}

# Host i + COUNT/2 serves host i. Prints one figure per pair, in GB/s.
iperf_pairs() {
  local half=$(($1 / 2)) i clients=()
  for ((i = 1; i <= half; ++i)); do
    ip netns exec "$name$((i + half))" iperf3 -s -1 >"$work/server$i" 2>&1 &
  done
  sleep 0.5
  for ((i = 1; i <= half; ++i)); do
    ip netns exec "$name$i" iperf3 -c "10.79.0.$((i + half))" -t 3 -O 1 -J >"$work/iperf$i" &
    clients+=($!)
  done
  wait "${clients[@]}"
  for ((i = 1; i <= half; ++i)); do
    python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["end"]["sum_received"]["bits_per_second"] / 8e9)' "$work/iperf$i"
  done
}

# Members meet at host 1. Prints the figure of all pairs together, and rank 0's opinion of it.
viaduct_pairs() {
  local half=$(($1 / 2)) i members=()
  for ((i = 1; i <= $1; ++i)); do
    ip netns exec "$name$i" env VIADUCT_SECRET=links VIADUCT_LISTEN="10.79.0.$i:0" \
      "$viaduct" bench --meet 10.79.0.1:7000 --rank $((i - 1)) --num-initiator-dev "$half" \
      --num-target-dev "$half" --backend tcp --block-sizes 8MB --batch 1 --duration 3s \
      --link-rate "net0=${rate}Mbit" --json "$work/bench$i" >"$work/out$i" 2>&1 &
    members+=($!)
  done
  for i in "${members[@]}"; do
    wait "$i" || { cat "$work"/out* >&2; return 1; }
  done
  python3 -c 'import json, sys
row = json.load(open(sys.argv[1]))["rows"][0]
print(row["gb_per_s"], row["verdict"], sorted({p["proven"] for p in row["path"]}))' "$work/bench1"
}

sum() { awk '{s += $1} END {printf "%.4f", s}' "$1"; }

echo "| members | links | iperf3, GB/s | viaduct, GB/s | ratio | verdicts |"
echo "|---|---|---|---|---|---|"
for count in "$@"; do
  hosts "$count"
  # Interleaved, so that both see the machine in the same state.
  for round in 1 2 3; do
    iperf_pairs "$count" >"$work/i$round"
    viaduct_pairs "$count" >"$work/v"
    echo "$(sum "$work/i$round") $(sum "$work/v")" >>"$work/sums$count"
  done
  python3 - "$work/sums$count" "$work/v" "$count" "$rate" <<'PY'
import statistics, sys
rows = [tuple(map(float, line.split())) for line in open(sys.argv[1])]
said = sorted({" ".join(line.split()[1:]) for line in open(sys.argv[2])})
iperf, viaduct = (statistics.median(r[i] for r in rows) for i in (0, 1))
ratio = statistics.median(v / i for i, v in rows)
print(f"| {sys.argv[3]} | {int(sys.argv[3]) // 2} x {sys.argv[4]} Mbit/s | {iperf:.4f} | {viaduct:.4f} |"
      f" {ratio:.3f} | {', '.join(said)} |", flush=True)
PY
  no_hosts
done
