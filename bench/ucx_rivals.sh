#!/bin/bash
# ucx_floor beside ucx_perftest's put and active messages on the same transport, in turns.
# Usage: bench/ucx_rivals.sh BUILD_DIR [rounds]. UCX_TLS and UCX_NET_DEVICES choose the transport; by
# default TCP over loopback. Prints GB/s (1e9 bytes of payload).
set -u
build=${1:?usage: ucx_rivals.sh BUILD_DIR [rounds]}
rounds=${2:-3}
export UCX_TLS=${UCX_TLS:-tcp} UCX_NET_DEVICES=${UCX_NET_DEVICES:-lo}
port=$((20000 + RANDOM % 20000))

# wait_for_port PORT: waits at most five seconds until a process listens there.
wait_for_port() {
  for _ in $(seq 100); do
    ss -Hltn "sport = :$1" | grep -q . && return 0
    sleep 0.05
  done
  return 1
}

# perftest TEST: prints its rate at each size.
perftest() {
  local size count server rate
  for size in 64 4096 65536 1048576 67108864; do
    count=$((500000000 / size + 5))
    ((size < 10000)) && count=100000
    ((size > 2000000)) && count=8
    port=$((port + 1))
    taskset -c 1 timeout 60 ucx_perftest -p $port > /dev/null 2>&1 &
    server=$!
    wait_for_port $port
    rate=$(taskset -c 0 timeout 60 ucx_perftest 127.0.0.1 -p $port -e -t "$1" -s $size \
      -n $count -w 10 -f 2> /dev/null | tail -1 | awk '{printf "%.3f", $(NF-2) * 1048576 / 1e9}')
    wait $server 2> /dev/null
    printf 'ucx_perftest %s %9d B: %s\n' "$1" $size "${rate:-failed}"
  done
}

for _ in $(seq "$rounds"); do
  "$build/bench/ucx_floor" 9 30
  if command -v ucx_perftest > /dev/null; then
    perftest ucp_put_bw
    perftest ucp_am_bw
  else
    echo "skipped: no ucx_perftest (package ucx-utils)"
  fi
done
