#!/usr/bin/env bash
# The throughput of pairs of hosts over links of a known rate, beside iperf3 over the same links.
# Hosts are network namespaces on one bridge; `tc tbf` limits every link in both directions.
#
# usage: links.sh VIADUCT [RATE [MEMBERS ...]]     as root; RATE in Mbit, 200 when none is given
set -euo pipefail
viaduct=$(realpath "$1")
rate=${2:-200} shape="burst 64kb latency 50ms"
shift $(($# < 2 ? $# : 2))
(($#)) || set -- 2 4 8 16
# shellcheck source=hosts.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

hosts() { # COUNT: 10.79.0.1, 10.79.0.2, ...
  host b
  ip -n "${name}b" link add br0 type bridge
  ip -n "${name}b" link set br0 up
  local i
  for ((i = 1; i <= $1; ++i)); do
    host "$i"
    link "$i" net0 b "p$i"
    end_of_link "$i" net0 "10.79.0.$i/24"
    end_of_link b "p$i" br0
  done
}

# Members meet at host 1. Prints the row of all pairs together.
viaduct_pairs() { # COUNT
  local half=$(($1 / 2)) i members=()
  for ((i = 1; i <= $1; ++i)); do
    on "$i" env VIADUCT_SECRET=links VIADUCT_LISTEN="10.79.0.$i:0" \
      "$viaduct" bench --meet 10.79.0.1:7000 --rank $((i - 1)) --num-initiator-dev "$half" \
      --num-target-dev "$half" --backend tcp --block-sizes 8MB --batch 1 --duration 3s \
      --link-rate "net0=${rate}Mbit" --json "$work/bench$i" >"$work/out$i" 2>&1 &
    members+=($!)
  done
  for i in "${members[@]}"; do
    wait "$i" || { cat "$work"/out* >&2; return 1; }
  done
  first_row "$work/bench1"
}

echo "| members | links | iperf3, GB/s | viaduct, GB/s | ratio | verdicts |"
echo "|---|---|---|---|---|---|"
for count in "$@"; do
  hosts "$count"
  half=$((count / 2)) pairs=()
  for ((i = 1; i <= half; ++i)); do pairs+=("$i $((i + half)) 10.79.0.$((i + half))"); done
  # Interleaved, so that both see the machine in the same state.
  for _ in 1 2 3; do
    iperf=$(iperf_pairs "${pairs[@]}")
    echo "$iperf $(viaduct_pairs "$count")" >>"$work/sums$count"
  done
  row_of_rounds "$count | $half x $rate Mbit/s" "$work/sums$count"
  remove_hosts
done
