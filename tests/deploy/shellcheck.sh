#!/usr/bin/env bash
# shellcheck.sh ROOT: checks every shell script of the project at ROOT. exit: 77 skipped, because
# shellcheck is missing.
set -euo pipefail
cd -- "$1"
command -v shellcheck >/dev/null || {
  echo "skipped: shellcheck is not installed"
  exit 77
}
mapfile -t scripts < <(grep -rlE --exclude-dir=build --exclude-dir=.git '^#!(/usr/bin/env bash|/bin/sh)$' .)
shellcheck -x "${scripts[@]}"
echo "${#scripts[@]} scripts"
