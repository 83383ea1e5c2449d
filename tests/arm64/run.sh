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
work=$PWD/build/arm64-apt
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
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
sources=$(tools/apt_sources.sh "$ID" "${VERSION_CODENAME:-}")
[[ $ID == debian && -f $keyring && -n $sources ]] || skip "the libraries come from Debian's archive, and this is $PRETTY_NAME"

# Runs apt with its own folders and architecture, and without installed packages.
private_apt() { APT_CONFIG=$work/apt.conf apt-get -q -y "$@"; }

unpack_packages() {
  mkdir -p "$work"/{lists,archives}/partial "$work/nothing"
  : >"$work/status"
  cat >"$work/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work";
Dir::Cache::archives "$work/archives";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "$work/nothing";
Dir::Etc::parts "$work/nothing";
CONF
  echo "${sources//deb /deb [signed-by=$keyring] }" >"$work/sources.list"
  private_apt update
  private_apt install --download-only "${packages[@]}"
  rm -rf -- "$root.part"
  mkdir -p "$root.part"/usr/{bin,lib,sbin}
  ln -s usr/{bin,lib,sbin} "$root.part/"
  local one
  for one in "$work"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$one" | tar -x --keep-directory-symlink -C "$root.part"
  done
  echo "${packages[*]}" >"$root.part/packages"
  rm -rf -- "$root"
  mv -- "$root.part" "$root"
}

if [[ $(cat "$root/packages" 2>/dev/null) != "${packages[*]}" ]]; then
  [[ ${VIADUCT_SETUP:-} != no ]] || skip "VIADUCT_SETUP=no, and build/arm64-root is not there"
  unpack_packages >"$work.log" 2>&1 || {
    tail -n 5 "$work.log"
    skip "the packages of arm64 were not to be had"
  }
fi

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
