#!/usr/bin/env bash
# Builds an image of Viaduct and verifies it by running it. All settings are variables:
#
#   BUILD_TARGET=NAME           slim, the default: Debian with local, tcp, ofi, ucx. slim-python: the same for
#                               Python. full: CUDA, EFA, GDRCopy
#   TAG=NAME:TAG                default: viaduct:VERSION, viaduct-python:VERSION, viaduct:VERSION-full-CUDA_ARCH_NAME
#   CUDA_ARCH_NAME=hopper       of a full image: ampere, ada, hopper or blackwell; sets CUDA_ARCH
#   CUDA_ARCH=90                the number itself
#   PUSH=yes                    push it after it was verified
#   SAVE=FOLDER                 write it to FOLDER/NAME-TAG.tar after it was verified
#   BASE=IMAGE                  another base image
#   ENGINE=docker|podman|buildah
#
# Further arguments go to the engine: deploy/docker/build.sh --build-arg UCX=1.19.0
set -euo pipefail
here=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")")
# shellcheck source=deploy/docker/engine.sh
. "$here/engine.sh"
source=$(realpath -- "$here/../..")

wrong() {
  echo "build.sh: $*" >&2
  exit 2
}

arch_of() {
  case $1 in
    ampere) echo 80 ;;
    ada) echo 89 ;;
    hopper) echo 90 ;;
    blackwell) echo 100 ;;
    *) wrong "CUDA_ARCH_NAME is ampere, ada, hopper or blackwell, not \"$1\"" ;;
  esac
}

target=${BUILD_TARGET:-slim}
version=$(sed -n 's/^project(viaduct VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
commit=$(git -C "$source" rev-parse HEAD 2>/dev/null || echo unknown)
arguments=(--build-arg "VERSION=$version" --build-arg "COMMIT=$commit")
if [[ -n ${BASE:-} ]]; then arguments+=(--build-arg "BASE=$BASE"); fi
case $target in
  slim)
    file=$here/slim.Dockerfile
    tag=${TAG:-viaduct:$version}
    ;;
  slim-python)
    file=$here/slim-python.Dockerfile
    tag=${TAG:-viaduct-python:$version}
    ;;
  full)
    file=$here/efa-cuda.Dockerfile
    name=${CUDA_ARCH_NAME:-hopper}
    arch=${CUDA_ARCH:-$(arch_of "$name")}
    tag=${TAG:-viaduct:$version-full-$name}
    arguments+=(--build-arg "CUDA_ARCH=$arch" --build-arg "CUDA_ARCH_NAME=$name")
    ;;
  *) wrong "BUILD_TARGET is slim, slim-python or full, not \"$target\"" ;;
esac
[[ $tag == *:* ]] || wrong "TAG is NAME:TAG, not \"$tag\""
find_engine

# buildah knows HEALTHCHECK in this format only.
if [[ $ENGINE != docker ]]; then arguments+=(--format docker); fi
image_build -f "$file" -t "$tag" "${arguments[@]}" "$@" "$source"

case $target in
  slim-python) test=verify_nixl_setup ;;
  *)
    image_run "$tag" viaduct --version
    test=nixlbench-test
    ;;
esac
code=0
image_run "$tag" "$test" >/dev/null || code=$?
case $code in
  0) echo "build.sh: two processes moved blocks in $tag" ;;
  77) echo "build.sh: $test was skipped in $tag: no name can be added there" ;;
  *)
    echo "build.sh: $test failed in $tag" >&2
    exit 1
    ;;
esac
if [[ ${PUSH:-} == yes ]]; then image_push "$tag"; fi
if [[ -n ${SAVE:-} ]]; then
  name=${tag##*/}
  mkdir -p -- "$SAVE"
  rm -f -- "$SAVE/${name/:/-}.tar"  # no engine writes over an archive
  image_save "$tag" "$SAVE/${name/:/-}.tar"
fi
echo "build.sh: $tag is ready"
