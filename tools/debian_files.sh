#!/usr/bin/env bash
# debian_files.sh SUITE FOLDER PACKAGE...: unpacks packages of another Debian into FOLDER, without installing them
# and without the packages that they depend on. Needs no root. Does nothing if FOLDER is there.
#
#   tools/debian_files.sh trixie build/python-3.13 libpython3.13-dev pybind11-dev
#
# exit: 0 done; 77 this machine's apt knows no Debian, and VIADUCT_DEBIAN_MIRROR names none; else apt's error
set -euo pipefail
suite=${1:?} folder=${2:?}
shift 2
[[ -e $folder ]] && exit
here=$(dirname -- "${BASH_SOURCE[0]}")
mirror=${VIADUCT_DEBIAN_MIRROR:-$("$here/apt_sources.sh" debian bookworm | awk '$3 == "bookworm" { print $2; exit }')}
if [[ -z $mirror ]]; then
  echo "skipped: this machine's apt has no Debian 12, and VIADUCT_DEBIAN_MIRROR names no mirror" >&2
  exit 77
fi
apt=$(mktemp -d)
trap 'rm -rf -- "$apt"' EXIT
mkdir -p "$apt"/{lists,cache/archives/partial,debs}
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$apt/sources.list"
options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$apt/lists"
  -o "Dir::Cache=$apt/cache" -o Dir::State::status=/dev/null -o "APT::Sandbox::User=$(id -un)" -qq)
apt-get "${options[@]}" update
(cd "$apt/debs" && apt-get "${options[@]}" download "$@")
rm -rf -- "$folder.part"
for deb in "$apt"/debs/*.deb; do dpkg-deb --extract "$deb" "$folder.part"; done
mv -- "$folder.part" "$folder"
