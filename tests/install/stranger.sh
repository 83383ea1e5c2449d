#!/usr/bin/env bash
# stranger.sh find_package|pkg_config DIR: builds and runs the stranger's project against the tree
# installed in DIR/prefix, with the compiler $CXX and $CXXFLAGS.
set -euo pipefail
here=$(cd -- "$(dirname -- "$0")" && pwd)
prefix=$2/prefix
out=$2/$1
rm -rf -- "$out"
mkdir -p -- "$out"

case $1 in
  find_package)
    cmake -G Ninja -S "$here/stranger" -B "$out" -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$out"
    ;;
  pkg_config)
    PKG_CONFIG_PATH=$(dirname -- "$(find "$prefix" -name viaduct.pc)")
    export PKG_CONFIG_PATH
    # Word splitting of flags is what eval undoes: pkg-config escapes a prefix that has spaces.
    eval "flags=($CXXFLAGS $(pkg-config --cflags --libs viaduct))"
    "$CXX" -std=c++20 "$here/../../examples/hello_transfer.cc" "${flags[@]}" \
      "-Wl,-rpath,$(dirname -- "$PKG_CONFIG_PATH")" -o "$out/stranger"
    ;;
esac
"$out/stranger"
