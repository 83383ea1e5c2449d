#!/usr/bin/env bash
# Builds the release for arm64 with Debian's cross compiler, and runs the unit tests under qemu-user.
#
#   tests/arm64/run.sh
#
# exit: 0 all passed; 1 a build or a test failed; 77 skipped: tools/arm64_root.sh says why
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
root=$PWD/build/arm64-root  # also in cmake/arm64.cmake

# Tests of functions that qemu-user 7.2 lacks. They run on the host.
excluded=(
  # process_vm_readv() and process_vm_writev()
  '*/cma' 'LocalProcess.AMemfdThatIsNotSharedIsNotHandedOut' 'LocalProcess.AMemfdThatCouldShrinkIsReachedAsPlainMemory'
  'LocalProcess.UnmappedMemoryIsAnErrorNotACrash' 'LocalProcess.WhereCmaIsForbiddenTheLinkSaysSoAndMappedMemoryStillMoves'
  'Local/EveryWay.MovesScatteredUnequalAndHugeBlocksBothWays/mapped'
  # TCP_INFO, of which qemu returns only four bytes
  ListenerTest.TheBacklogIsAsLongAsTheKernelAllows TcpFails.AfterAFreezeNothingStaleLands
)

tools/arm64_root.sh

cmake --preset arm64 >build/arm64.log 2>&1 || {
  cat build/arm64.log >&2
  exit 1
}
cmake --build --preset arm64 -j "$(nproc)" --target viaduct_cli viaduct_doctor unit_tests examples/all
# qemu-user has no chroot of its own, so tests/doctor_file runs for the processor of this machine alone.
doctor=build/arm64/apps/viaduct/viaduct-doctor
qemu-aarch64 $doctor --json >build/arm64-doctor.json || (($? <= 2))
grep -q '"libraries.one-file"' build/arm64-doctor.json
if readelf --program-headers $doctor | grep -q INTERP || (($(stat -c %s $doctor) > 15000000)); then
  echo "$doctor needs a loader, or has more than 15 MB"
  exit 1
fi

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
