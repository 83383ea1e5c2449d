#!/bin/bash
# Other programs on this machine's loopback, beside tcp_floor: ucx_perftest's put over tcp, and
# iperf3, in turns. Prints GB/s (1e9 bytes of payload).
#
# usage: tcp_rivals.sh BUILD_DIR [ROUNDS]
set -u
build=${1:?usage: tcp_rivals.sh BUILD_DIR [ROUNDS]}
# shellcheck source=rivals.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/rivals.sh"
export UCX_TLS=tcp UCX_NET_DEVICES=lo

# Loss-based congestion control, as on tcp_floor's own sockets.
congestion=cubic
grep -qw cubic /proc/sys/net/ipv4/tcp_available_congestion_control || congestion=reno

iperf() {
  command -v iperf3 >/dev/null || { echo "skipped: no iperf3 (package iperf3)"; return; }
  local rate
  serve iperf3 -s -1
  rate=$(timeout 20 taskset -c 0 iperf3 -c 127.0.0.1 -p $port -t 2 -l 1M -C $congestion -f m 2>/dev/null |
    awk '/receiver/ {for (i = 1; i < NF; ++i) if ($(i+1) == "Mbits/sec") printf "%.2f", $i / 8000}')
  wait "$server" 2>/dev/null
  printf 'iperf3 one stream, %s: %s\n' $congestion "${rate:-failed}"
}

for _ in $(seq "${2:-3}"); do
  "$build/bench/tcp_floor" 5 20
  perftest ucp_put_bw "4096 65536 1048576 67108864" -w 1
  iperf
done
