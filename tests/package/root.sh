#!/usr/bin/env bash
# root.sh FOLDER: installs the packages of FOLDER into a new Debian, uses them, and removes them.
#
# exit: 0 all passed; 1 a step failed; 77 skipped. Needs root, for mounts and its own root folder.
# The Debian system is made once, with the packages' dependencies and a C compiler, and kept in
# build/package-root. Its packages come from this machine's apt sources, or from
# VIADUCT_DEBIAN_MIRROR.
set -euo pipefail
self=$(realpath -- "${BASH_SOURCE[0]}")
source=$(realpath -m -- "$(dirname -- "$self")/../..")
folder=$(realpath -- "${1:?}")
system=$source/build/package-root

skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

make_system() {
  local release mirror packages
  # shellcheck disable=SC1091
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$("$source/tools/debian_mirror.sh" 2>&1) || skip "$mirror"
  packages=$(for one in "$folder"/*.deb; do dpkg-deb --field "$one" Depends; done |
    sed 's/([^)]*)//g; s/[, ]\+/\n/g' | grep -v '^libviaduct$' | sort -u | paste -sd,)
  rm -rf --one-file-system -- "$system.part"
  debootstrap --variant=minbase --include="gcc,libc6-dev,pkg-config,man-db,$packages" "$release" \
    "$system.part" "$mirror" >"$system.log" 2>&1 || fail "debootstrap: $(tail -n 20 "$system.log")"
  mv -- "$system.part" "$system"
}

# All files except logs, and except the records of dpkg, apt and the loader.
files() {
  find / -xdev \( -path /proc -o -path /dev -o -path /sys -o -path /var/lib/dpkg -o -path /var/cache \
    -o -path /var/log -o -path /var/lib/apt -o -path /packages -o -path /tmp -o -path /run \) -prune \
    -o -print | sort
}

milliseconds() { echo $((${EPOCHREALTIME/./} / 1000)); }
# The processor time of this shell and of all that it has waited for. On an idle machine a user waits about as long;
# here it does not depend on what else runs.
processor_milliseconds() { awk '{ print ($14 + $15 + $16 + $17) * 10 }' /proc/$$/stat; }

# Runs in the new system.
use_packages() {
  local before after start took used_before used one
  before=$(files)
  start=$(milliseconds) used_before=$(processor_milliseconds)
  apt-get install -y -q --no-install-recommends /packages/*.deb >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
  used=$(($(processor_milliseconds) - used_before))
  echo "installed in $(($(milliseconds) - start)) ms, $used ms of processor time"
  ((used <= 10000)) || fail "the installation took more than 10 s of processor time"
  ! grep -iE 'warning|error' /tmp/log || fail "the installation warned"

  [[ $(viaduct --version) == "viaduct "[0-9]* ]] || fail "viaduct does not know its version"
  viaduct bench --backend local --block-sizes 64K --duration 1s --output csv | tail -n 1
  took=$(($(milliseconds) - start))
  echo "the first row came $took ms after the start of the installation"
  ((took <= 30000)) || fail "the first row took more than 30 s"
  [[ $(nixlbench --help) == "usage: nixlbench"* ]] || fail "nixlbench is not nixlbench"
  man -w viaduct viaduct-bench nixlbench >/dev/null
  bash -c 'source /usr/share/bash-completion/completions/viaduct && complete -p viaduct' >/dev/null

  (cd / && setpriv --reuid 65534 --regid 65534 --clear-groups python3 -m viaduct.nixl run -- verify_nixl_setup) ||
    fail "python3-viaduct does not work"

  # shellcheck disable=SC2046  # words
  cc -std=c11 -Wall -Wextra -pedantic -Werror /usr/share/doc/viaduct/examples/pair.c \
    $(pkg-config --cflags --libs viaduct) -o /tmp/pair
  [[ $(readelf --dynamic /tmp/pair) == *'[libviaduct.so.0]'* ]] || fail "the program has no shared library"
  /tmp/pair receiver /tmp/card &
  /tmp/pair sender /tmp/card
  wait $!

  apt-get install -y -q --no-install-recommends --reinstall /packages/*.deb >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
  viaduct --version >/dev/null
  # Either package can be removed without the other.
  apt-get purge -y -q viaduct >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
  rm /tmp/card
  /tmp/pair receiver /tmp/card >/dev/null &
  /tmp/pair sender /tmp/card >/dev/null
  wait $!
  apt-get purge -y -q libviaduct-dev libviaduct libviaduct-nixl python3-viaduct >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
  for one in viaduct libviaduct libviaduct-dev libviaduct-nixl python3-viaduct; do
    ! dpkg-query --show --showformat '${db:Status-Status}\n' $one 2>/dev/null | grep -v not-installed || fail "$one is still known"
  done
  ! ldconfig -p | grep viaduct || fail "the loader still knows the library"
  after=$(files)
  diff <(echo "$before") <(echo "$after") || fail "files are left behind, or gone"
  echo "used and removed; nothing is left behind"
}

case ${2:-} in
  --inside)
    use_packages
    ;;
  --mounted)  # in a mount namespace: changes by the packages stay in memory
    root=$(mktemp -d)
    mount -t tmpfs tmpfs "$root"
    mkdir "$root/upper" "$root/work" "$root/system"
    mount -t overlay overlay -o "lowerdir=$system,upperdir=$root/upper,workdir=$root/work" "$root/system"
    mount -t proc proc "$root/system/proc"
    mount --rbind /dev "$root/system/dev"
    mkdir "$root/system/packages"
    mount --bind "$folder" "$root/system/packages"
    cp "$self" "$root/system/tmp/root.sh"
    exec env -i PATH="$PATH" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      chroot "$root/system" bash /tmp/root.sh /packages --inside
    ;;
  *)
    ((EUID == 0)) || skip "not root"
    command -v debootstrap >/dev/null || skip "no debootstrap"
    unshare --mount true 2>/dev/null || skip "no right to mount"
    [[ -d $system ]] || make_system
    unshare --mount --pid --fork --kill-child --propagation private "$self" "$folder" --mounted
    ;;
esac
