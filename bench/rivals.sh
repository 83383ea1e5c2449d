# shellcheck shell=bash
# Other programs on this machine, beside our floors: for tcp_rivals.sh and ucx_rivals.sh, which
# source this file.
port=$((20000 + RANDOM % 20000))

# Starts a server on processor 1, and waits at most five seconds until it listens at $port.
serve() { # COMMAND...
  port=$((port + 1))
  timeout 60 taskset -c 1 "$@" -p $port >/dev/null 2>&1 &
  server=$!
  local _
  for _ in $(seq 100); do
    ss -Hltn "sport = :$port" | grep -q . && return 0
    sleep 0.05
  done
  return 1
}

# Prints the rate of a test of ucx_perftest at each size, in GB/s (1e9 bytes of payload). Large
# transfers get few iterations, because one put of 64 MiB can take more than a second.
perftest() { # TEST SIZES FLAGS...
  command -v ucx_perftest >/dev/null || { echo "skipped: no ucx_perftest (package ucx-utils)"; return; }
  local size count rate
  for size in $2; do
    count=$((500000000 / size + 5))
    ((size < 10000)) && count=100000
    ((size > 2000000)) && count=4
    serve ucx_perftest
    rate=$(timeout 60 taskset -c 0 ucx_perftest 127.0.0.1 -p $port -t "$1" -s "$size" -n $count -f "${@:3}" 2>/dev/null |
      tail -1 | awk '{printf "%.3f", $(NF-2) * 1048576 / 1e9}')
    wait "$server" 2>/dev/null
    printf 'ucx_perftest %s %9d B: %s\n' "$1" "$size" "${rate:-failed}"
  done
}
