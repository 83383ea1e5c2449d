#!/usr/bin/env bash
# Unpacks Debian's libraries for arm64 into build/arm64-root, for cmake/arm64.cmake. The system and its
# package database stay unchanged, and no step needs root.
#
# exit: 0 they are there; 77 they, or the cross compiler, are not to be had, with the reason. With
# VIADUCT_SETUP=no it downloads nothing.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
packages=(libacl1-dev libarchive-dev libbenchmark-dev libcurl4-openssl-dev libfabric-dev libfmt-dev libgtest-dev
  libssl-dev libucx-dev nlohmann-json3-dev zlib1g-dev)

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
if [[ ! -e build/arm64-root && ${VIADUCT_SETUP:-} == no ]]; then skip "VIADUCT_SETUP=no, and build/arm64-root is not there"; fi
mkdir -p build
tools/debian_files.sh --architecture arm64 --dependencies "$VERSION_CODENAME" build/arm64-root "${packages[@]}" \
  >build/arm64-root.log 2>&1 || {
  tail -n 5 build/arm64-root.log
  skip "the packages of arm64 were not to be had"
}
