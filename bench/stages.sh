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
shape="burst 256kb latency 20ms"
# shellcheck source=hosts.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

host a
host b
link a net0 b net0
end_of_link a net0 10.78.0.1/24
end_of_link b net0 10.78.0.2/24
member() {
  VIADUCT_SECRET=$name on "$1" "$viaduct" pipeline --meet 10.78.0.1:7000 --rank "$2" \
    "file:$folder/source,$memory,net,$memory,file:$folder/copy" \
    --create-source "${mib}MiB" --total-buffer-size "${mib}MiB" --repeat "$rounds"
}
member b 1 &
member a 0
wait
