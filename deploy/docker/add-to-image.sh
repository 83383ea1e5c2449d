#!/usr/bin/env bash
# Adds Viaduct to an image as one layer: /opt/viaduct, with the libraries and the loader that it needs, whatever the C
# library of the image is. Backends: local and tcp, and those of ofi and ucx whose libraries the image has.
#
#   deploy/docker/add-to-image.sh BASE OUT       VIADUCT_IMAGE names the image it comes from, by default viaduct:VERSION
set -euo pipefail
here=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")")
# shellcheck source=deploy/docker/engine.sh
. "$here/engine.sh"
base=${1:?usage: add-to-image.sh BASE OUT} out=${2:?usage: add-to-image.sh BASE OUT}
version=$(sed -n 's/^project(viaduct VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt")
from=${VIADUCT_IMAGE:-viaduct:$version}
find_engine

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cat >"$work/Dockerfile" <<TEXT
FROM $from AS viaduct
USER 0
RUN viaduct-copy /opt/viaduct && mkdir -p /out/opt && mv /opt/viaduct /out/opt
FROM $base
COPY --from=viaduct /out/ /
TEXT
format=()
if [[ $ENGINE != docker ]]; then format=(--format docker); fi
image_build "${format[@]}" -t "$out" "$work"

image_run "$out" /opt/viaduct/viaduct --version
before=$(image_layers "$base") after=$(image_layers "$out")
((after == before + 1)) || {
  echo "add-to-image.sh: $out has $((after - before)) layers more than $base" >&2
  exit 1
}
echo "add-to-image.sh: $out is $base with one more layer: /opt/viaduct/viaduct, /opt/viaduct/nixlbench"
