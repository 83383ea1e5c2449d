#!/usr/bin/env bash
# Boots Debian's kernel in qemu with RDMA devices in software (rdma_rxe over veth). Runs the
# contract of the backends ofi, over verbs;ofi_rxm, and ucx, over rc_verbs, in it.
#
#   tests/verbs/run.sh BUILD      a build folder with the programs listed below
#
# exit: 0 all passed; 1 a test failed, the guest crashed, or it did not report its end; 77 skipped,
# because this machine lacks a program, which it names. VIADUCT_VERBS_SECONDS (900) limits the
# guest's time; VIADUCT_SETUP=no keeps it from downloading.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
build=$(cd -- "${1:?usage: run.sh BUILD}" && pwd)
mkdir -p "$here/../../build/verbs"
work=$(cd -- "$here/../../build/verbs" && pwd)
root=$work/root

# Each test program under BUILD/tests, with a filter of its tests. README.md gives the reasons for
# the excluded ones.
not_there='*.ACancelledTransferLeavesBothMemoriesAlone/*:*.AFailedTransferDoesNotOutliveItsDeadline/*:*.OtherRailsCarryTheSlicesOfABrokenRail/*:*.SeveralRailsTogetherCarryEveryByteOnce/*:*.StripingIsTurnedOnAndOff/*:*.ReadOnlyMemoryIsReadAndNeverWritten/*'
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
# libfabric asks for longer queues than rxe has. UCX looks for an IPv4 packet's mark at a place
# where rxe leaves none: docs/gotchas/verbs.md
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

# The path of a library that the loader knows by this name. Reads all input, because an early exit
# would make the writer fail.
library() { ldconfig -p | awk -v name="$1" '$1 == name && /x86-64/ && !n++ { print $NF }'; }
libfabric=$(library libfabric.so.1)
[[ -n $libfabric ]] || skip "no libfabric.so.1"
rxe_provider=$(find /usr/lib -path '*/libibverbs/librxe-*.so' -print -quit)
[[ -n $rxe_provider && -e /etc/libibverbs.d/rxe.driver ]] ||
  skip "no librxe of libibverbs (package ibverbs-providers)"
# UCX looks for its transports in a folder beside its libraries.
libucp=$(library libucp.so.0)
ucx_ib=$(dirname "${libucp:-/}")/ucx/libuct_ib.so.0
if [[ ! -x $build/tests/backends_ucx_test ]]; then
  echo "ucx: skipped: built without it (libucx-dev)"
elif [[ -z $libucp || ! -e $ucx_ib ]]; then
  echo "ucx: skipped: no libucp.so.0 with the transports for verbs (package libucx0)"
else
  tests+=("${ucx_tests[@]}")
fi

# The newest kernel package that apt has, kept in build/verbs.
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

# with FILE [PLACE]: copies a file, and the libraries that it is linked with, into the guest.
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
  # The provider verbs looks up `localhost`, and is missing if that name is unknown.
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
# The guest's clock counts its instructions, a nanosecond each, and skips idle time, so a busy
# machine makes no deadline in the guest expire. Without `erms` and `fsrm`, kernel and glibc avoid
# copy instructions that TCG executes byte by byte. After a panic the guest ends and does not
# restart.
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
