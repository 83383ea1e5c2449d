#!/usr/bin/env bash
# Prints the mirror of Debian that VIADUCT_DEBIAN_MIRROR or this machine's apt names. exit: 1 there is none.
set -euo pipefail
# shellcheck disable=SC2016  # apt-get fills in the names
mirror=${VIADUCT_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' \
  'Origin: Debian' | awk '$2 !~ /-/ { print $1; exit }')}  # not that of security updates, such as bookworm-security
if [[ -z $mirror ]]; then
  echo "this machine's apt has no Debian, and VIADUCT_DEBIAN_MIRROR names no mirror" >&2
  exit 1
fi
echo "$mirror"
