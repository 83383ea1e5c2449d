#!/usr/bin/env bash
# Makes a new system in a folder, and clones HEAD there. Types the README's two commands as an
# ordinary user who has sudo and 1,024 file descriptors.
#
#   tests/fresh/run.sh        as root: it makes device nodes, mounts and changes its root folder
#
# exit: 0 all passed; 1 a command failed, or there was no first row; 77 every system was skipped.
# Packages come from this machine's apt sources, if it has the same distribution. Otherwise
# VIADUCT_DEBIAN_MIRROR and VIADUCT_UBUNTU_MIRROR name a mirror; without one a system is skipped.
# It writes only to build/fresh/: a log of each command, and the systems while it runs.
set -euo pipefail
self=$(realpath -- "${BASH_SOURCE[0]}")
source=$(realpath -- "$(dirname -- "$self")/../..")
work=$source/build/fresh
mkdir -p "$work"

# Prints lines of sources.list for DISTRIBUTION RELEASE MIRROR.
mirror_sources() {
  local components=main
  if [[ $1 == ubuntu ]]; then components="main universe"; fi
  printf 'deb %s %s %s\n' "$3" "$2" "$components" "$3" "$2-updates" "$components"
}

# make_system DISTRIBUTION RELEASE ROOT SOURCES: installs a minimal system into ROOT.
make_system() {
  local root=$3 mirror script=/usr/share/debootstrap/scripts/$2 options=(--variant=minbase)
  mirror=$(awk -v release="$2" '$3 == release { print $2; exit }' <<<"$4")
  # A release that this debootstrap does not know is made like the distribution's other releases.
  if [[ ! -e $script && $1 == ubuntu ]]; then script=/usr/share/debootstrap/scripts/gutsy; fi
  if [[ $1 == ubuntu && ! -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]]; then
    echo "no ubuntu-archive-keyring.gpg here: the packages' signatures are not checked"
    options+=(--no-check-gpg)
  fi
  debootstrap "${options[@]}" --include=ca-certificates,sudo "$2" "$root" "$mirror" "$script"
  rm -rf "$root"/etc/apt/sources.list.d/*
  printf '%s\n' "$4" >"$root/etc/apt/sources.list"
  # Copies proxies and other settings that this machine's apt needs to reach its sources.
  apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/00host"
  cp /etc/apt/auth.conf.d/* "$root/etc/apt/auth.conf.d/" 2>/dev/null || true
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  cp -L /etc/resolv.conf "$root/etc/"
  uname -n >"$root/etc/hostname"
  printf '127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost\n' "$(uname -n)" >"$root/etc/hosts"

  chroot "$root" useradd --create-home --shell /bin/bash somebody
  echo 'somebody ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/somebody"
  git clone --quiet --no-hardlinks "$source" "$root/home/somebody/viaduct"
  chroot "$root" chown -R somebody: /home/somebody/viaduct
}

# Mounts the file systems of a booted system.
mount_system() {
  mount --bind "$1" "$1"
  mount -t proc proc "$1/proc"
  mount -t sysfs -o ro sysfs "$1/sys"
  mount -t tmpfs -o mode=755 dev "$1/dev"
  mkdir "$1/dev/shm" "$1/dev/pts"
  mount -t tmpfs -o nosuid,nodev shm "$1/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=666 devpts "$1/dev/pts"
  ln -s pts/ptmx "$1/dev/ptmx"
  ln -s /proc/self/fd "$1/dev/fd"
  ln -s fd/0 "$1/dev/stdin"
  ln -s fd/1 "$1/dev/stdout"
  ln -s fd/2 "$1/dev/stderr"
  local device
  for device in null zero full random urandom tty; do
    : >"$1/dev/$device"
    mount --bind "/dev/$device" "$1/dev/$device"
  done
  mount -t tmpfs -o nosuid,nodev run "$1/run"
  chmod 1777 "$1/dev/shm"
}

# typed ROOT COMMAND: runs COMMAND as the user "somebody", in a new login.
typed() {
  env -i TERM=dumb PATH="$PATH" chroot "$1" su - somebody -c "ulimit -n 1024 && cd viaduct && $2" </dev/null
}

minutes() { awk -v seconds="$1" 'BEGIN { printf "%.1f min", seconds / 60 }'; }

# Runs both commands in the system ROOT; fails if one fails. NAME appears in the output.
both_commands() {
  local root=$1 name=$2 start=$SECONDS first='' line code=0
  mount_system "$root"
  while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ -z $first && $line =~ ^(local|tcp|ucx|ofi)\ .*\ (proven|unproven) ]]; then
      first=$((SECONDS - start))
    fi
  done < <(typed "$root" ./dev\ run 2>&1 || echo "./dev run failed") >"$work/$name.run.log"
  if [[ -z $first ]] || tail -n 1 "$work/$name.run.log" | grep -q '^./dev run failed$'; then
    tail -n 20 "$work/$name.run.log"
    echo "$name: ./dev run FAILED"
    return 1
  fi
  echo "$name: first row of ./dev run after $(minutes "$first"), its end after $(minutes $((SECONDS - start)))"

  start=$SECONDS
  typed "$root" "./dev test" >"$work/$name.test.log" 2>&1 || code=$?
  grep -E '^[0-9]+% tests passed' "$work/$name.test.log" || tail -n 20 "$work/$name.test.log"
  sed -n '/^The following tests FAILED/,$p' "$work/$name.test.log"
  echo "$name: ./dev test ended with $code after $(minutes $((SECONDS - start)))"
  return $code
}

# inside DISTRIBUTION RELEASE ROOT SOURCES: the whole test for one system.
inside() {
  name=$1-$2
  trap 'tail -n 20 "$work/$name.system.log"' EXIT
  make_system "$@" >"$work/$name.system.log" 2>&1
  trap - EXIT
  both_commands "$3" "$name"
}

if [[ ${1:-} == --inside ]]; then
  inside "${@:2}"
  exit
fi

if ((EUID != 0)); then
  echo "$0: not root" >&2
  exit 1
fi
if [[ -n $(git -C "$source" status --porcelain) ]]; then echo "note: what is not committed is not in HEAD"; fi

# A system has its own mounts and processes, which all end with its first process.
root=
unshared=
stop() {
  if [[ -n $unshared ]]; then
    local first
    first=$(cat "/proc/$unshared/task/$unshared/children" 2>/dev/null || true)
    # shellcheck disable=SC2086  # it ends in a space
    kill -KILL ${first:-$unshared} 2>/dev/null || true
    wait "$unshared" 2>/dev/null || true
  fi
  if [[ -n $root ]]; then rm -rf --one-file-system -- "$root"; fi
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

results=()
for system in "debian bookworm" "ubuntu jammy" "ubuntu noble"; do
  read -r distribution release <<<"$system"
  name=$distribution-$release
  mirror=VIADUCT_${distribution^^}_MIRROR
  if [[ -n ${!mirror:-} ]]; then
    sources=$(mirror_sources "$distribution" "$release" "${!mirror}")
  else
    sources=$("$source/tools/apt_sources.sh" "$distribution" "$release")
  fi
  printf '\n== %s\n' "$name"
  if [[ -z $sources ]]; then
    echo "skipped: this machine's apt does not have it, and $mirror names no mirror"
    results+=("$name: skipped")
    continue
  fi
  root=$work/$name
  rm -rf --one-file-system -- "$root"
  unshare --mount-proc --pid --fork --kill-child "$self" --inside "$distribution" "$release" "$root" "$sources" &
  unshared=$!
  if wait "$unshared"; then results+=("$name: ok"); else results+=("$name: FAILED"); fi
  unshared=
  rm -rf --one-file-system -- "$root"
done
printf '\n'
printf '%s\n' "${results[@]}"
case "${results[*]}" in
  *FAILED*) exit 1 ;;
  *": ok"*) ;;
  *) exit 77 ;;
esac
