#!/usr/bin/env bash
# From file to file of two hosts in stages, over a link of a known rate. The hosts are network
# namespaces; `tc tbf` limits the link in both directions.
#
# usage: stages.sh STAGES_BENCH FOLDER [RATE [ROUNDS [MIB]]]     as root; RATE in Mbit, default 1000
set -euo pipefail
bench=$(realpath "$1")
folder=$(realpath "$2")
rate=${3:-1000} rounds=${4:-5} mib=${5:-256}
name=vs$$
trap 'ip netns del "${name}a" 2>/dev/null; ip netns del "${name}b" 2>/dev/null || true' EXIT

ip netns add "${name}a"
ip netns add "${name}b"
ip -n "${name}a" link add net0 type veth peer name net0 netns "${name}b"
for end in a:1 b:2; do
  ns=$name${end%:*}
  ip -n "$ns" link set lo up
  ip -n "$ns" address add "10.78.0.${end#*:}/24" dev net0
  ip -n "$ns" link set net0 up
  ip netns exec "$ns" tc qdisc add dev net0 root tbf rate "${rate}mbit" burst 256kb latency 20ms
done
ip netns exec "${name}a" "$bench" "$folder" "$rounds" "$mib" "${name}b" 10.78.0.2
