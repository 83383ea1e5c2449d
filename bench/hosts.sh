# shellcheck shell=bash disable=SC2154
# Hosts on this machine, for the scripts that source this file: network namespaces, and links of
# $rate Mbit between them in the shape $shape. Needs root. They go when the script ends.
work=$(mktemp -d)
name=v$$
trap 'end_hosts' EXIT

end_hosts() {
  jobs -p | xargs -r kill 2>/dev/null || true
  wait 2>/dev/null || true
  remove_hosts
  rm -rf "$work"
}
remove_hosts() {
  ip netns list | awk -v n="$name" 'index($1, n) == 1 {print $1}' | xargs -r -n 1 ip netns del
}
host() { # HOST: adds one
  ip netns add "$name$1"
  ip -n "$name$1" link set lo up
}
on() { ip netns exec "$name$1" "${@:2}"; } # HOST COMMAND...
link() { # HOST DEVICE HOST DEVICE
  ip -n "$name$1" link add "$2" type veth peer name "$4" netns "$name$3"
}
end_of_link() { # HOST DEVICE ADDRESS|BRIDGE
  if [[ $3 == */* ]]; then ip -n "$name$1" address add "$3" dev "$2"; else ip -n "$name$1" link set "$2" master "$3"; fi
  ip -n "$name$1" link set "$2" up
  # shellcheck disable=SC2086  # the shape is words
  on "$1" tc qdisc add dev "$2" root tbf rate "${rate}mbit" $shape
}

# Runs iperf3 between pairs of hosts at the same time. Prints the payload of all in GB/s.
iperf_pairs() { # "CLIENT SERVER SERVER'S-ADDRESS"...
  local pair client server address clients=() results=()
  for pair in "$@"; do
    read -r _ server address <<<"$pair"
    on "$server" iperf3 -s -1 -B "$address" >/dev/null 2>&1 &
  done
  sleep 0.5
  for pair in "$@"; do
    read -r client _ address <<<"$pair"
    results+=("$work/iperf${#results[@]}")
    on "$client" iperf3 -c "$address" -t 3 -O 1 -J >"${results[-1]}" &
    clients+=($!)
  done
  wait "${clients[@]}"
  python3 -c 'import json, sys
print(sum(json.load(open(f))["end"]["sum_received"]["bits_per_second"] for f in sys.argv[1:]) / 8e9)' \
    "${results[@]}"
}

# Prints rate, verdict and proof of a result's first row.
first_row() { # FILE
  python3 -c 'import json, sys
row = json.load(open(sys.argv[1]))["rows"][0]
print(row["gb_per_s"], row["verdict"], sorted({p["proven"] for p in row["path"]}))' "$1"
}

# Prints a row of a table: the medians of rounds, whose lines are iperf3's rate and a first row.
row_of_rounds() { # CELLS FILE
  python3 - "$@" <<'PY'
import statistics, sys
rounds = [line.split(maxsplit=2) for line in open(sys.argv[2])]
iperf, ours = ([float(one[i]) for one in rounds] for i in (0, 1))
ratio = statistics.median(b / a for a, b in zip(iperf, ours))
said = ", ".join(sorted({one[2].strip() for one in rounds}))
print(f"| {sys.argv[1]} | {statistics.median(iperf):.4f} | {statistics.median(ours):.4f} | {ratio:.3f} | {said} |", flush=True)
PY
}
