#!/usr/bin/env bash
# Boots Debian's kernel in qemu with RDMA devices in software (rdma_rxe over veth), and runs in it what
# Viaduct promises of the backends ofi, over verbs;ofi_rxm, and ucx, over rc_verbs.
#
#   tests/verbs/run.sh BUILD      a build folder with the programs listed below
#
# exit: 0 all passed; 1 a test failed, the guest crashed, or it never said that it had finished;
# 77 skipped, because this machine lacks what it takes, and says what.
# VIADUCT_VERBS_SECONDS (900) is how long the guest has; VIADUCT_SETUP=no keeps it from downloading.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$(cd -- "${1:?usage: run.sh BUILD}" && pwd)
mkdir -p "$here/../../build/verbs"
work=$(cd -- "$here/../../build/verbs" && pwd)
root=$work/root

# program under BUILD/tests, and which of its tests: README.md says why not the others.
not_there='*.ACancelledTransferLeavesBothMemoriesAlone/*:*.AFailedTransferDoesNotOutliveItsDeadline/*:*.WhatABrokenRailHadIsCarriedByTheOthers/*:*.SeveralRailsTogetherCarryEveryByteOnce/*:*.StripingIsTurnedOnAndOff/*'
tests=(
  "backends_ofi_test Ofi/OfiEndpointTest.*/verbs_ofi_rxm"
  "contract/contract_test Fabrics/FabricContract.*/ofi"
  "contract/contract_test Every/BackendContract.*/ofi:-$not_there"
  "verbs/verbs_rails_test *"
)
ucx_tests=(
  "backends_ucx_test *OverRdma*"
  "contract/contract_test Fabrics/FabricContract.*/ucx"
  "contract/contract_test Every/BackendContract.*/ucx:-$not_there:*.ReleasingAPinUnderTrafficLeavesItsMemoryAlone/*:*.BothDirectionsAtOnceDoNotBlockEachOther/*"
)
modules=(crc32_generic rdma_rxe rdma_ucm veth sch_netem)
# The queues that libfabric asks for are longer than rxe has them, and UCX looks for an IPv4 packet's
# mark where rxe leaves none: docs/gotchas/verbs.md
environment=(
  "VIADUCT_OFI_PROVIDER='verbs;ofi_rxm'"
  FI_UNIVERSE_SIZE=4 FI_OFI_RXM_TX_SIZE=64 FI_OFI_RXM_RX_SIZE=64
  FI_OFI_RXM_MSG_TX_SIZE=64 FI_OFI_RXM_MSG_RX_SIZE=64 FI_OFI_RXM_USE_SRX=1
  UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_RC_VERBS_RX_QUEUE_LEN=64 UCX_UD_VERBS_RX_QUEUE_LEN=128
)

skip() {
  echo "skipped: $*"
  exit 77
}

[[ $(uname -m) == x86_64 ]] || skip "the guest is for x86_64, and this is $(uname -m)"
[[ -x $build/tests/backends_ofi_test ]] || skip "built without the backend ofi (libfabric-dev)"
PATH=$PATH:/usr/sbin:/sbin
for tool in qemu-system-x86_64 busybox cpio depmod modprobe ip rdma tc dpkg-deb; do
  command -v $tool >/dev/null || skip "no $tool"
done

# Where a library lies whose name the loader knows. All is read: who stops early fails who still writes.
library() { ldconfig -p | awk -v name="$1" '$1 == name && /x86-64/ && !n++ { print $NF }'; }
libfabric=$(library libfabric.so.1)
[[ -n $libfabric ]] || skip "no libfabric.so.1"
rxe_provider=$(find /usr/lib -path '*/libibverbs/librxe-*.so' -print -quit)
[[ -n $rxe_provider && -e /etc/libibverbs.d/rxe.driver ]] ||
  skip "no librxe of libibverbs (package ibverbs-providers)"
# UCX finds its transports in a folder beside its libraries.
libucp=$(library libucp.so.0)
ucx_ib=$(dirname "${libucp:-/}")/ucx/libuct_ib.so.0
if [[ ! -x $build/tests/backends_ucx_test ]]; then
  echo "ucx: skipped: built without it (libucx-dev)"
elif [[ -z $libucp || ! -e $ucx_ib ]]; then
  echo "ucx: skipped: no libucp.so.0 with the transports for verbs (package libucx0)"
else
  tests+=("${ucx_tests[@]}")
fi

# The kernel's package: the newest that apt has, kept in build/verbs.
package=$(apt-cache depends linux-image-amd64 2>/dev/null |
  awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ && !n++ { print $2 }') || true
deb=$(find "$work" -name "${package:-linux-image-}*.deb" -print | sort -V | tail -n 1)
if [[ -z $deb ]]; then
  [[ -n $package ]] || skip "apt knows no linux-image-amd64 (not Debian, or no lists)"
  [[ ${VIADUCT_SETUP:-} != no ]] || skip "no $package in build/verbs, and VIADUCT_SETUP=no"
  (cd "$work" && apt-get -q download "$package" 2>&1) || skip "apt cannot download $package"
  deb=$(find "$work" -name "$package*.deb" -print -quit)
fi
kernel=$work/$(basename "$deb" .deb)
if [[ ! -e $kernel/complete ]]; then
  rm -rf "$kernel"
  mkdir -p "$kernel"
  dpkg-deb -x "$deb" "$kernel"
  depmod -b "$kernel" "$(ls "$kernel/lib/modules")"
  touch "$kernel/complete"
fi
release=$(ls "$kernel/lib/modules")

# with FILE [PLACE]: a file, and the libraries it is linked with, into the guest.
with() {
  local lib
  install -D "$1" "$root${2:-$1}"
  ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r lib; do
    [[ -e $root$lib ]] || install -D "$lib" "$root$lib"
  done
}

fill_root() {
  local module tool row file
  rm -rf "$root"
  mkdir -p "$root"/{proc,sys,dev,modules,etc/libibverbs.d}
  install -D "$(command -v busybox)" "$root/bin/busybox"
  install "$here/init" "$root/init"
  install "$here/rail" "$root/rail"
  for module in "${modules[@]}"; do
    modprobe -d "$kernel" -S "$release" --show-depends "$module"
  done | sed -n 's/^insmod \(.*[^ ]\) *$/\1/p' | awk '!seen[$0]++' >"$work/modules"
  while read -r file; do
    install -m 644 "$file" "$root/modules/"
    basename "$file" >>"$root/modules/order"
  done <"$work/modules"
  for tool in ip rdma tc; do with "$(command -v $tool)" "/host/$tool"; done
  with "$libfabric"
  if [[ " ${tests[*]} " == *" backends_ucx_test "* ]]; then
    with "$libucp"
    with "$ucx_ib"
  fi
  with "$rxe_provider"
  cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
  # The provider verbs looks up `localhost`, and is not there where nobody knows it.
  echo "127.0.0.1 localhost" >"$root/etc/hosts"
  echo "hosts: files" >"$root/etc/nsswitch.conf"
  {
    printf 'export %s\n' "${environment[@]}"
    echo "export LD_LIBRARY_PATH=$(dirname "$libfabric")"
  } >"$root/environment"
  for row in "${tests[@]}"; do
    file=$build/tests/${row%% *}
    with "$file" "/tests/$(basename "$file")"
    strip "$root/tests/$(basename "$file")"
    echo "$(basename "$file") ${row#* }" >>"$root/tests/list"
  done
  (cd "$root" && find . | cpio -o -H newc --quiet) >"$work/initrd"
}

fill_root
run=viaduct-verbs-$$-$RANDOM
console=$work/console
: >"$console"
start=$SECONDS
code=0
# The guest's clock counts its instructions, a nanosecond each, and skips its idleness: however busy this
# machine is, no deadline in the guest is missed for it. Without `erms` and `fsrm` the kernel and glibc do
# not copy by instructions that TCG carries out byte by byte. A panic ends it, and it does not start again.
timeout --foreground "${VIADUCT_VERBS_SECONDS:-900}" \
  qemu-system-x86_64 -accel tcg -icount shift=0,sleep=off -cpu max,-erms,-fsrm -m 2G -nic none -display none \
  -no-reboot -monitor none -serial "file:$console" \
  -kernel "$kernel"/boot/vmlinuz-* -initrd "$work/initrd" \
  -append "console=ttyS0 quiet panic=-1 oops=panic viaduct.run=$run" </dev/null || code=$?
tr -d '\r' <"$console" >"$console.txt"
ended=$(sed -n "s/^$run exit \([0-9]*\)$/\1/p" "$console.txt" | tail -n 1)
if [[ $ended == 0 ]]; then
  grep -E '^(-- |\[==========\].* ran\.|\[  (PASSED|SKIPPED) )|carried|with a rail' "$console.txt"
  echo "the guest took $((SECONDS - start)) s; its console is in build/verbs/console.txt"
  exit 0
fi
echo "The guest's console:"
sed 's/^/| /' "$console.txt"
if [[ -n $ended ]]; then
  echo "FAILED in the guest: exit $ended"
elif ((code == 124)); then
  echo "FAILED: the guest had not finished after ${VIADUCT_VERBS_SECONDS:-900} s"
elif grep -q 'Kernel panic' "$console.txt"; then
  echo "FAILED: the guest's kernel panicked"
else
  echo "FAILED: the guest ended without saying how (qemu: $code)"
fi
exit 1
