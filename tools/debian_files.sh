#!/usr/bin/env bash
# debian_files.sh [--architecture ARCH] [--dependencies] SUITE FOLDER PACKAGE...
#
# Unpacks packages of a Debian into FOLDER, without installing them: those that are named, and with --dependencies
# also those that they need. The system and its package database stay unchanged, and no step needs root. Does nothing
# if FOLDER has these packages already. FOLDER/versions lists all that it holds.
#
#   tools/debian_files.sh trixie build/python-3.13 libpython3.13-dev pybind11-dev
set -euo pipefail
here=$(dirname -- "${BASH_SOURCE[0]}")
architecture=$(dpkg --print-architecture) what=(download)
while [[ $1 == --* ]]; do
  case $1 in
    --architecture) architecture=$2 && shift ;;
    --dependencies) what=(install --download-only) ;;
    *) echo "$0: unknown option $1" >&2 && exit 2 ;;
  esac
  shift
done
suite=$1 folder=$2
shift 2
if [[ -f $folder/versions && $(<"$folder/packages") == "$*" ]]; then exit; fi
mirror=$("$here/debian_mirror.sh")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -f $keyring ]] || { echo "there is no $keyring (package debian-archive-keyring)" >&2 && exit 1; }

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir -p "$work"/{lists,archives}/partial "$work/nothing"
: >"$work/status"
echo "deb [signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
cat >"$work/apt.conf" <<CONF
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
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
Dir::Etc::preferencesparts "$work/nothing";
CONF
# Settings of this machine that its apt needs to reach its sources.
apt-config dump | sed -n '/^Acquire::/p' >>"$work/apt.conf"
export APT_CONFIG=$work/apt.conf
apt-get -qq update
(cd "$work/archives" && apt-get -qq -y "${what[@]}" "$@")

rm -rf -- "$folder.part"
mkdir -p "$folder.part"/usr/{bin,lib,sbin}
ln -s usr/{bin,lib,sbin} "$folder.part/"
for one in "$work"/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$one" | tar -x --keep-directory-symlink -C "$folder.part"
  # shellcheck disable=SC2016  # dpkg's own words
  dpkg-deb --show --showformat '${Package} ${Version}\n' "$one" >>"$folder.part/versions"
done
echo "$*" >"$folder.part/packages"
rm -rf -- "$folder"
mv -- "$folder.part" "$folder"
