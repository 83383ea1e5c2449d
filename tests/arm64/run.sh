#!/usr/bin/env bash
# Builds the release for arm64 with Debian's cross compiler, and runs the unit tests under qemu-user.
# The arm64 libraries are unpacked into build/arm64-root. The system and its package database stay
# unchanged, and no step needs root.
#
#   tests/arm64/run.sh
#
# exit: 0 all passed; 1 a build or a test failed; 77 skipped, because this machine lacks a program,
# which it names. With VIADUCT_SETUP=no it downloads nothing.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
root=$PWD/build/arm64-root  # also in cmake/arm64.cmake
packages=(libacl1-dev libarchive-dev libbenchmark-dev libcurl4-openssl-dev libfabric-dev libfmt-dev libgtest-dev
  libssl-dev libucx-dev nlohmann-json3-dev zlib1g-dev)

# Tests of functions that qemu-user 7.2 lacks. They run on the host.
excluded=(
  # process_vm_readv() and process_vm_writev()
  '*/cma' 'LocalProcess.AMemfdThatIsNotSharedIsNotHandedOut' 'LocalProcess.AMemfdThatCouldShrinkIsReachedAsPlainMemory'
  'LocalProcess.UnmappedMemoryIsAnErrorNotACrash' 'LocalProcess.WhereCmaIsForbiddenTheLinkSaysSoAndMappedMemoryStillMoves'
  'Local/EveryWay.MovesScatteredUnequalAndHugeBlocksBothWays/mapped'
  # TCP_INFO, of which qemu returns only four bytes
  ListenerTest.TheBacklogIsAsLongAsTheKernelAllows TcpFails.AfterAFreezeNothingStaleLands
)

skip() {
  echo "skipped: $*"
  exit 77
}
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v $tool >/dev/null || skip "there is no $tool (Debian: g++-aarch64-linux-gnu, qemu-user)"
done
# shellcheck source=/dev/null
. /etc/os-release
[[ $ID == debian ]] || skip "the libraries come from Debian's archive, and this is $PRETTY_NAME"
if [[ ! -e $root && ${VIADUCT_SETUP:-} == no ]]; then skip "VIADUCT_SETUP=no, and build/arm64-root is not there"; fi
tools/debian_files.sh --architecture arm64 --dependencies "$VERSION_CODENAME" "$root" "${packages[@]}" \
  >build/arm64-root.log 2>&1 || {
  tail -n 5 build/arm64-root.log
  skip "the packages of arm64 were not to be had"
}

cmake --preset arm64 >build/arm64.log 2>&1 || {
  cat build/arm64.log >&2
  exit 1
}
cmake --build --preset arm64 -j "$(nproc)" --target viaduct_cli viaduct_doctor unit_tests examples/all
# qemu-user has no chroot of its own, so tests/doctor_file runs for the processor of this machine alone.
qemu-aarch64 build/arm64/apps/viaduct/viaduct-doctor --json >build/arm64-doctor.json || (($? <= 2))
grep -q '"libraries.one-file"' build/arm64-doctor.json

# Runs each program as a whole, because qemu takes a second to start one, and there are a thousand
# tests.
logs=$PWD/build/arm64-tests
rm -rf -- "$logs"
mkdir -p "$logs"
filter=-$(IFS=:; echo "${excluded[*]}")
export logs root filter
run_one() {
  local name
  name=$(basename "$1")
  ulimit -n 1024
  # Without this setting, a libfabric endpoint over TCP takes 70 MB: docs/gotchas/libfabric.md.
  if FI_OFI_RXM_USE_SRX=0 timeout 1800 qemu-aarch64 -L "$root" "$1" --gtest_filter="$filter" \
    >"$logs/$name.log" 2>&1; then
    echo "$name: $(grep -F '[  PASSED  ]' "$logs/$name.log"); $(grep -c '^\[  SKIPPED \] .*ms)$' "$logs/$name.log" || true) skipped"
  else
    grep -F -B 10 '[  FAILED  ]' "$logs/$name.log" || tail -n 20 "$logs/$name.log"
    echo "$name: FAILED; all of it is in $logs/$name.log"
    return 1
  fi
}
export -f run_one
find build/arm64/tests -name '*_test' -type f -print0 | xargs -0 -P "$(nproc)" -I {} bash -c 'run_one {}'
ctest --preset arm64 -L examples
