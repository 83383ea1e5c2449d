#!/usr/bin/env bash
# A pipeline from file to file of two hosts, over a link of a known rate. The hosts are network
# namespaces; `tc tbf` limits the link in both directions.
#
# usage: stages.sh VIADUCT FOLDER [RATE [ROUNDS [MIB [MEMORY]]]]     as root; RATE in Mbit, default 1000; MEMORY
# is host, or cuda0 for a pipeline through GPUs
set -euo pipefail
viaduct=$(realpath "$1")
folder=$(realpath "$2")
rate=${3:-1000} rounds=${4:-5} mib=${5:-256} memory=${6:-host}
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
member() {
  VIADUCT_SECRET=$name ip netns exec "$name$1" "$viaduct" pipeline --meet 10.78.0.1:7000 --rank "$2" \
    "file:$folder/source,$memory,net,$memory,file:$folder/copy" \
    --create-source "${mib}MiB" --total-buffer-size "${mib}MiB" --repeat "$rounds"
}
member b 1 &
member a 0
wait
