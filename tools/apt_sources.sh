#!/usr/bin/env bash
# Prints the sources of this machine's apt that are of a distribution and its release, as lines of
# sources.list. Nothing where it has none.
#
#   tools/apt_sources.sh debian bookworm
set -euo pipefail
# shellcheck disable=SC2016  # apt-get fills in the names
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
  'Created-By: Packages' "Origin: ${1^}" | awk -v release="$2" '$3 ~ "^" release "(-|$)"' | sort -u
