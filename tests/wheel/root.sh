#!/usr/bin/env bash
# root.sh FOLDER: installs the wheels of FOLDER by pip and runs programs with them, as an ordinary user. It does so in
# fresh systems: Debian 12 with only Python and pip, Debian 12 with numpy as well, and Debian 13. The wheel for Python
# 3.9 runs in Debian 12 under Debian 11's interpreter.
#
# exit: 0 all passed; 1 something failed; 77 skipped. Needs root, for mounts and a root folder of its own.
# The script creates the systems once and keeps them in build/wheel-root*. Packages come from the mirror of this
# machine's apt, or from VIADUCT_DEBIAN_MIRROR.
set -euo pipefail
self=$(realpath -- "${BASH_SOURCE[0]}")
source=$(realpath -m -- "$(dirname -- "$self")/../..")
folder=$(realpath -- "${1:?}")

skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# make_system ROOT SUITE PACKAGES: installs a minimal system with these packages into ROOT.
make_system() {
  local mirror
  mirror=$("$source/tools/debian_mirror.sh" 2>&1) || skip "$mirror"
  rm -rf --one-file-system -- "$1.part"
  debootstrap --variant=minbase --include="$3" "$2" "$1.part" "$mirror" >"$1.log" 2>&1 ||
    fail "debootstrap: $(tail -n 20 "$1.log")"
  chroot "$1.part" useradd --create-home --shell /bin/bash somebody
  mv -- "$1.part" "$1"
}

# Runs in the fresh system as the user "somebody", in an empty folder.
use_wheels() {
  cd
  if [[ $1 == python3.9 ]]; then
    use_python_39
    return
  fi
  for package in libfmt9 libfmt10 libucx0 libfabric1 g++; do
    if dpkg-query --show "$package" >/dev/null 2>&1; then fail "$package is here, and should not be"; fi
  done
  # pip takes the wheel for 3.9 on the oldest system that docs/install.md names.
  python3 -m pip download --quiet --no-index --find-links /wheels --no-deps --only-binary=:all: --dest /tmp/older \
    --python-version 3.9 --platform "manylinux_2_34_$(uname -m)" viaduct
  local start=$SECONDS
  python3 -m pip install --quiet --user --break-system-packages --no-warn-script-location \
    --no-index --find-links /wheels viaduct-nixl
  echo "installed: $(python3 -m pip list --user 2>/dev/null | grep viaduct | tr -s ' ' | paste -sd,)"
  ldd "$(python3 -c 'import viaduct; print(viaduct._core.__file__)')" >libraries
  if grep 'not found' libraries; then fail "the module lacks a library"; fi
  ~/.local/bin/verify_nixl_setup
  python3 -m viaduct.verify --json | python3 /tmp/look.py "$1"
  python3 /examples/two_processes.py server card &
  python3 /examples/two_processes.py client card
  wait $!
  echo "the first blocks had moved $((SECONDS - start)) s after the start of the installation"
  ((SECONDS - start <= 30)) || fail "the first blocks took more than 30 s"
  python3 -c 'import nixl_cu13; print("nixl:", nixl_cu13.nixl_agent("somebody").get_plugin_list())'
  if [[ $1 == with ]]; then python3 /examples/kv_blocks.py; fi
}

# There is no pip for this interpreter, which finds its libraries beside it.
use_python_39() {
  for wheel in /wheels/viaduct-*-cp39-*.whl /wheels/viaduct_nixl-*.whl; do
    python3 -m zipfile --extract "$wheel" packages
  done
  python3.9() {
    LD_LIBRARY_PATH=$(echo /python3.9/usr/lib/*-linux-gnu) PYTHONPATH=packages /python3.9/usr/bin/python3.9 "$@"
  }
  python3.9 -m viaduct.verify --json | python3 /tmp/look.py without
  python3.9 /examples/two_processes.py server card &
  python3.9 /examples/two_processes.py client card
  wait $!
  python3.9 -c 'import nixl, sys; print("nixl:", nixl.nixl_agent("somebody").get_plugin_list(), sys.version)'
}

case ${2:-} in
  --inside)
    su somebody -c "set -euo pipefail; $(declare -f fail use_wheels use_python_39); use_wheels $3"
    ;;
  --mounted)  # in a new mount namespace: an overlay in memory takes all installed files
    root=$(mktemp -d)
    mount -t tmpfs tmpfs "$root"
    mkdir "$root/upper" "$root/work" "$root/system"
    mount -t overlay overlay -o "lowerdir=$3,upperdir=$root/upper,workdir=$root/work" "$root/system"
    mount -t proc proc "$root/system/proc"
    mount --rbind /dev "$root/system/dev"
    mkdir "$root/system/wheels" "$root/system/examples" "$root/system/python3.9"
    mount --bind "$folder" "$root/system/wheels"
    mount --bind "$source/examples/python" "$root/system/examples"
    if [[ $4 == python3.9 ]]; then mount --bind "$source/build/python3.9-run" "$root/system/python3.9"; fi
    cp "$self" "$source/tests/wheel/look.py" "$root/system/tmp/"
    exec env -i PATH="$PATH" LC_ALL=C.UTF-8 chroot "$root/system" bash /tmp/root.sh /wheels --inside "$4"
    ;;
  *)
    ((EUID == 0)) || skip "not root"
    command -v debootstrap >/dev/null || skip "no debootstrap"
    unshare --mount true 2>/dev/null || skip "no right to mount"
    # Each line has a system's name, its Debian release, its packages, and the argument of
    # use_wheels.
    while read -r name suite packages how; do
      system=$source/build/wheel-root-$name
      [[ -d $system ]] || make_system "$system" "$suite" "$packages"
      if [[ $how == python3.9 ]]; then
        "$source/tools/debian_files.sh" bullseye "$source/build/python3.9-run" \
          python3.9-minimal libpython3.9-minimal libpython3.9-stdlib libffi7
      fi
      echo "-- $name, $how"
      unshare --mount --pid --fork --kill-child --propagation private "$self" "$folder" --mounted "$system" "$how" </dev/null
    done <<'ROWS'
without-numpy bookworm python3,python3-pip without
without-numpy bookworm python3,python3-pip python3.9
with-numpy bookworm python3,python3-pip,python3-numpy with
debian-13 trixie python3,python3-pip without
ROWS
    ;;
esac
