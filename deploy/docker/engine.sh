# shellcheck shell=bash
# What build.sh and add-to-image.sh need of docker, podman or buildah; they source this file.

find_engine() {
  local one
  if [[ -z ${ENGINE:-} ]]; then
    for one in docker podman buildah; do
      if command -v "$one" >/dev/null; then ENGINE=$one; break; fi
    done
  fi
  command -v "${ENGINE:-none}" >/dev/null || {
    echo "neither docker nor podman nor buildah is installed; ENGINE names another program that takes the arguments of docker" >&2
    exit 2
  }
}

image_build() { "$ENGINE" build "$@"; }
image_push() { "$ENGINE" push "$1"; }
# image_save IMAGE FILE: writes a tar archive for `docker load` and `podman load`.
image_save() {
  if [[ $ENGINE == buildah ]]; then
    buildah push --quiet "$1" "docker-archive:$2:$1" >/dev/null
  else
    "$ENGINE" save -o "$2" "$1"
  fi
}

# The command in a new container of the image, without a network: it needs none.
image_run() {
  local image=$1 container code=0
  shift
  if [[ $ENGINE != buildah ]]; then
    "$ENGINE" run --rm --network none "$image" "$@"
    return
  fi
  container=$(buildah from --pull-never "$image")
  buildah run "$container" -- "$@" || code=$?
  buildah rm "$container" >/dev/null
  return $code
}

image_layers() {
  if [[ $ENGINE == buildah ]]; then
    buildah inspect --type image --format '{{len .OCIv1.RootFS.DiffIDs}}' "$1"
  else
    "$ENGINE" image inspect --format '{{len .RootFS.Layers}}' "$1"
  fi
}

# The size that a registry stores: each layer compressed.
image_compressed_bytes() {
  local folder
  folder=$(mktemp -d)
  image_save "$1" "$folder/image.tar"
  gzip -6 <"$folder/image.tar" | wc -c
  rm -rf -- "$folder"
}
