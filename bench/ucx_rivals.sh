#!/bin/bash
# ucx_floor beside ucx_perftest's put and active messages on the same transport, in turns. UCX_TLS
# and UCX_NET_DEVICES choose the transport; by default TCP over loopback. Prints GB/s (1e9 bytes of
# payload).
#
# usage: ucx_rivals.sh BUILD_DIR [ROUNDS]
set -u
build=${1:?usage: ucx_rivals.sh BUILD_DIR [ROUNDS]}
# shellcheck source=rivals.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/rivals.sh"
export UCX_TLS=${UCX_TLS:-tcp} UCX_NET_DEVICES=${UCX_NET_DEVICES:-lo}

for _ in $(seq "${2:-3}"); do
  "$build/bench/ucx_floor" 9 30
  for test in ucp_put_bw ucp_am_bw; do perftest $test "64 4096 65536 1048576 67108864" -e -w 10; done
done
