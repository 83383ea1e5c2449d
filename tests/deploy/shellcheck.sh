#!/usr/bin/env bash
# Checks every shell script of the project at ROOT: shellcheck.sh ROOT. exit: 77 skipped, because there is
# no shellcheck.
set -euo pipefail
cd -- "$1"
command -v shellcheck >/dev/null || {
  echo "skipped: shellcheck is not installed"
  exit 77
}
mapfile -t scripts < <(grep -rlE --exclude-dir=build --exclude-dir=.git '^#!(/usr/bin/env bash|/bin/sh)$' .)
shellcheck -x "${scripts[@]}"
echo "${#scripts[@]} scripts"
