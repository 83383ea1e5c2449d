#!/usr/bin/env bash
# The backend tcp (A) beside the TCP of libfabric and UCX (B), between two processes of this
# machine: every size from 256 B to 64 MiB, one block and 16 per transfer, in turns.
#
# usage: fabrics.sh VIADUCT [ROUNDS]     ROUNDS of each side, 8 by default
set -euo pipefail
viaduct=$1
rounds=${2:-8}
export VIADUCT_OFI_PROVIDER=tcp UCX_TLS=tcp UCX_NET_DEVICES=lo
for other in ofi ucx; do
  for batch in 1 16; do
    sizes=256,1K,4K,16K,64K,256K,1M,4M
    ((batch == 1)) && sizes+=,16M,64M
    printf '\n== tcp (A), %s (B), %s in a transfer\n' "$other" "$batch"
    "$viaduct" bench --backend tcp --block-sizes "$sizes" --batch "$batch" --duration 2s \
      --rounds "$rounds" --against "--backend $other" || [[ $? == 1 ]]
  done
done
