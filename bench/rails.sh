#!/usr/bin/env bash
# The throughput of a transfer over several links between two hosts, beside iperf3 over the same
# links together; and the cost of a link that is cut in the middle of a transfer. Hosts are network
# namespaces; `tc tbf` limits every link in both directions.
#
# usage: rails.sh BUILD [RATE]     as root; BUILD: a build folder; RATE of a link in Mbit, 500 when
#                                  none is given. LINKS="1 4" SHAPES="1MiB 8,64MiB 1" CUTS="3"
#                                  ROUNDS=1 TURNS=4 make it shorter, and " " leaves a part out;
#                                  BACKEND=ofi measures another backend than tcp.
set -euo pipefail
viaduct=$(realpath "$1/apps/viaduct/viaduct")
peer=$(realpath "$1/tests/process/process_peer")
rate=${2:-500} shape="burst 128kb latency 50ms"
backend=${BACKEND:-tcp}
rounds=${ROUNDS:-3}
turns=${TURNS:-8}
read -ra links_of <<<"${LINKS:-1 2 3 4}"
IFS=, read -ra transfers <<<"${SHAPES:-1MiB 1,1MiB 8,64MiB 1}" # block size, blocks in flight
read -ra cuts <<<"${CUTS:-3 1 0}"
# shellcheck source=hosts.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

hosts() {
  host a
  host b
  local i end
  for i in 0 1 2 3; do
    link a "rail$i" b "rail$i"
    end_of_link a "rail$i" "10.80.$i.1/24"
    end_of_link b "rail$i" "10.80.$i.2/24"
  done
  # The kernel reports a link up to a second late, and libfabric lists only links that are up.
  for i in 0 1 2 3; do
    for end in a b; do
      until [[ $(ip -n "$name$end" link show "rail$i") == *"state UP"* ]]; do sleep 0.1; done
    done
  done
}

addresses() { # COUNT HOST SUFFIX: 10.80.0.HOST, 10.80.1.HOST, ... joined by commas
  local i out=
  for ((i = 0; i < $1; ++i)); do out+=${out:+,}10.80.$i.$2$3; done
  echo "$out"
}

member() { # HOST NUMBER COUNT FLAGS...
  on "$1" env VIADUCT_SECRET=rails VIADUCT_LISTEN="$(addresses "$3" "$2" :0)" \
    VIADUCT_RAILS="$(addresses "$3" "$2" "")" "$viaduct" "${@:4}" --meet 10.80.0.1:7000 --backend "$backend"
}
# Runs a command of viaduct between the hosts, over so many rails. Prints the output of rank 0.
viaduct_pair() { # COUNT FLAGS...
  member b 2 "$@" --rank 1 >"$work/out1" 2>&1 &
  local target=$!
  { member a 1 "$@" --rank 0 2>"$work/out0" && wait "$target"; } || { cat "$work"/out? >&2; return 1; }
}

viaduct_links() { # COUNT BLOCK BATCH
  local rates='' i
  for ((i = 0; i < $1; ++i)); do rates+=${rates:+,}rail$i=${rate}Mbit; done
  viaduct_pair "$1" bench --block-sizes "$2" --batch "$3" --duration 3s --link-rate "$rates" --json "$work/bench" >&2
  first_row "$work/bench"
}

striping() {
  echo "| links | block, in flight | iperf3, GB/s | viaduct, GB/s | ratio | verdict |"
  echo "|---|---|---|---|---|---|"
  local links transfer i
  for links in "${links_of[@]}"; do
    local pairs=()
    for ((i = 0; i < links; ++i)); do pairs+=("a b 10.80.$i.2"); done
    for transfer in "${transfers[@]}"; do
      local block=${transfer% *} batch=${transfer#* } iperf
      rm -f "$work/sums"
      # Interleaved, so that both see the machine in the same state.
      for ((i = 0; i < rounds; ++i)); do
        iperf=$(iperf_pairs "${pairs[@]}")
        echo "$iperf $(viaduct_links "$links" "$block" "$batch" 2>"$work/rows")" >>"$work/sums"
      done
      row_of_rounds "$links x $rate Mbit/s | $block, $batch" "$work/sums"
    done
  done
}

# Small transfers over all four rails: cut for every rail, or only for as many as pay off.
coalescing() {
  viaduct_pair 4 suite --rails rail0,rail1,rail2,rail3 --tests coalescing --rounds "$turns" --duration 100ms
}

# Two processes that obey commands, one per line.
cut_one() { # WHICH LINK
  python3 - "$peer" "$name" "$1" "$rate" "$backend" <<'PY'
import os, subprocess, sys, time
peer, name, link, rate, backend = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
size = 1 << 30

class End:
    def __init__(self, host):
        self.process = subprocess.Popen(["ip", "netns", "exec", name + host, peer], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
    def answer(self):
        said = self.process.stdout.readline().strip()
        if not said.startswith("ok"):
            sys.exit(f"failed: {said}")
        return said[3:]
    def ask(self, line):
        self.tell(line)
        return self.answer()

def addresses(host, suffix):
    return ",".join(f"10.80.{i}.{host}{suffix}" for i in range(4))

a, b = End("a"), End("b")
cards = [end.ask(f"open name={n} backends={backend} listen={addresses(h, ':0')} rails={addresses(h, '')}")
         for end, n, h in ((a, "a", 1), (b, "b", 2))]
for end in (a, b):
    end.ask(f"memory data {size}")
a.ask("import " + cards[1])
a.ask("ready b 20000")
a.ask("plan t write b data data 1048576")

def run(byte, cut_after=None):
    a.ask(f"fill data {byte}")
    start = time.monotonic()
    a.ask("post t")
    if cut_after is not None:
        time.sleep(cut_after)
        subprocess.run(["ip", "-n", name + "b", "link", "set", "rail" + link, "down"], check=True)
        cut_after = time.monotonic() - start
    path = a.ask("wait t 60000")
    took = time.monotonic() - start
    differ = int(b.ask(f"differ data {byte}"))
    return took, cut_after, path, differ

run(1)
whole = sorted(run(2 + i)[0] for i in range(3))[1]
took, cut, path, differ = run(9, whole / 3)
speed = size / whole / 4
ideal = (size - speed * cut) / (3 * speed)
print(f"| rail{link} | {whole:.2f} | {cut:.2f} | {ideal:.2f} | {took:.2f} | {took - ideal:.2f} | {differ} | {path} |")
subprocess.run(["ip", "-n", name + "b", "link", "set", "rail" + link, "up"], check=True)
for end in (a, b):
    end.process.stdin.close()
    end.process.wait()
PY
}

hosts
striping
echo
[[ $turns == " " ]] || coalescing
echo
echo "| cut | 1 GiB over four, s | cut after, s | were it free, s | took, s | lost, s | bytes that differ | path |"
echo "|---|---|---|---|---|---|---|---|"
for link in "${cuts[@]}"; do cut_one "$link"; done
