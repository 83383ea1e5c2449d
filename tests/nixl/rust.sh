#!/bin/bash
# usage: rust.sh VIADUCT SOURCE
# Compiles a program in Rust and starts it as a user does. Exit code 77: skipped.
set -euo pipefail
[ -n "${VIADUCT_RUST:-}" ] || { echo "skipped: only ./dev check --long compiles Rust"; exit 77; }
command -v rustc >/dev/null || { echo "skipped: no rustc"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
rustc --edition 2021 -D warnings -o "$folder/calls" "$2"
XDG_RUNTIME_DIR=$folder "$1" exec --nixl -- "$folder/calls"
