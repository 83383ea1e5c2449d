#!/usr/bin/env bash
# install.sh BUILD [PREFIX]: installs the stripped results of BUILD into PREFIX (by default
# /usr/local for root, ~/.local for others). Prints how to find and remove them: docs/install.md.
set -euo pipefail
build=$1
prefix=${2:-}
if [[ -z $prefix ]]; then ((EUID == 0)) && prefix=/usr/local || prefix=$HOME/.local; fi
prefix=$(realpath -m -- "$prefix")

root=()
if ! { mkdir -p -- "$prefix" && [[ -w $prefix ]]; } 2>/dev/null; then
  command -v sudo >/dev/null || {
    echo "You may not write to $prefix, and there is no sudo. Name another folder, or be root." >&2
    exit 1
  }
  root=(sudo)
  echo "(sudo, because you may not write to $prefix)"
fi
rm -f -- "$build/install_manifest.txt"  # sudo may have written it for root
log=$("${root[@]}" cmake --install "$build" --strip --prefix "$prefix") || {
  echo "$log" >&2
  exit 1
}

mapfile -t files <"$build/install_manifest.txt"
# Lists a folder that only we use in place of its files.
mapfile -t installed < <(printf '%s\n' "${files[@]#"$prefix/"}" | sed 's,/viaduct/.*,/viaduct,' | sort -u)
pkgconfig=$(printf '%s\n' "${installed[@]}" | sed -n 's,/viaduct\.pc$,,p')
examples=$(printf '%s\n' "${installed[@]}" | grep '^share/doc/')/examples

echo "Installed into $prefix:"
printf '  %s\n' "${installed[@]}"
if [[ $prefix == /usr/local ]]; then
  echo "Shells, CMake and pkg-config look there by themselves."
else
  echo "To find it:"
  # shellcheck disable=SC2016  # the user's shell expands it
  printf '  export PATH=%q:$PATH\n' "$prefix/bin"
  printf '  export CMAKE_PREFIX_PATH=%q\n' "$prefix"
  printf '  export PKG_CONFIG_PATH=%q\n' "$prefix/$pkgconfig"
fi
echo "To try it:"
# shellcheck disable=SC2016  # the user's shell expands it
printf '  c++ -std=c++20 %q $(pkg-config --cflags --libs viaduct) -o hello && ./hello\n' \
  "$prefix/$examples/hello_transfer.cc"
echo "To remove it:"
printf '  '
printf '%q ' "${root[@]}" rm -r "${installed[@]/#/$prefix/}"
echo
