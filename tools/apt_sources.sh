#!/usr/bin/env bash
# Prints this machine's apt sources of one release of a distribution, as lines of sources.list.
# Prints nothing if the machine has no such source.
#
#   tools/apt_sources.sh debian bookworm
set -euo pipefail
# shellcheck disable=SC2016  # apt-get fills in the names
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
  'Created-By: Packages' "Origin: ${1^}" | awk -v release="$2" '$3 ~ "^" release "(-|$)"' | sort -u
