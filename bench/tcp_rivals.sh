#!/bin/bash
# Other programs on this machine's loopback, beside tcp_floor: ucx_perftest's put over tcp, and
# iperf3, in turns. Usage: bench/tcp_rivals.sh BUILD_DIR [rounds]. Prints GB/s (1e9 bytes of
# payload).
set -u
build=${1:?usage: tcp_rivals.sh BUILD_DIR [rounds]}
rounds=${2:-3}
port=$((20000 + RANDOM % 20000))

# Loss-based congestion control, as on tcp_floor's own sockets.
congestion=cubic
grep -qw cubic /proc/sys/net/ipv4/tcp_available_congestion_control || congestion=reno

# wait_for_port PORT: waits at most five seconds until a process listens there.
wait_for_port() {
  for _ in $(seq 100); do
    ss -Hltn "sport = :$1" | grep -q . && return 0
    sleep 0.05
  done
  return 1
}

ucx() {
  command -v ucx_perftest > /dev/null || { echo "skipped: no ucx_perftest (package ucx-utils)"; return; }
  local size count server rate
  for size in 4096 65536 1048576 67108864; do
    # Few iterations, because one of its puts of 64 MiB can take more than a second.
    count=$((500000000 / size + 5)) && ((size > 2000000)) && count=4
    port=$((port + 1))
    UCX_TLS=tcp UCX_NET_DEVICES=lo taskset -c 1 timeout 60 ucx_perftest -p $port > /dev/null 2>&1 &
    server=$!
    wait_for_port $port
    rate=$(UCX_TLS=tcp UCX_NET_DEVICES=lo taskset -c 0 timeout 60 ucx_perftest 127.0.0.1 -p $port \
      -t ucp_put_bw -s $size -n $count -w 1 -f 2> /dev/null | tail -1 |
      awk '{printf "%.2f", $(NF-2) * 1048576 / 1e9}')
    wait $server 2> /dev/null
    printf 'ucx_perftest ucp_put_bw tcp %9d B: %s\n' $size "${rate:-failed}"
  done
}

iperf() {
  command -v iperf3 > /dev/null || { echo "skipped: no iperf3 (package iperf3)"; return; }
  port=$((port + 1))
  timeout 20 iperf3 -s -1 -p $port -A 1 > /dev/null 2>&1 &
  local server=$! rate
  wait_for_port $port
  rate=$(timeout 20 iperf3 -c 127.0.0.1 -p $port -A 0 -t 2 -l 1M -C $congestion -f m 2> /dev/null |
    awk '/receiver/ {for (i = 1; i < NF; ++i) if ($(i+1) == "Mbits/sec") printf "%.2f", $i / 8000}')
  wait $server 2> /dev/null
  printf 'iperf3 one stream, %s: %s\n' $congestion "${rate:-failed}"
}

for _ in $(seq "$rounds"); do
  "$build/bench/tcp_floor" 5 20
  ucx
  iperf
done
