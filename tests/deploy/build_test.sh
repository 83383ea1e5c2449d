#!/usr/bin/env bash
# Runs deploy/docker/build.sh with a fake engine, which records its commands and fails at the
# command that contains $FAIL.
#
#   build_test.sh WORK
set -euo pipefail
root=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../..")
mkdir -p -- "$1"
work=$(mktemp -d -p "$1")
trap 'rm -rf -- "$work"' EXIT
cat >"$work/engine" <<'TEXT'
#!/usr/bin/env bash
echo "$*" >>"${0%/*}/told"
[[ -z ${FAIL:-} || $* != *"$FAIL"* ]]
TEXT
chmod +x "$work/engine"
export ENGINE=$work/engine
unset BUILD_TARGET TAG CUDA_ARCH CUDA_ARCH_NAME PUSH SAVE BASE

# expect CODE TEXT VARIABLE=VALUE...: expects this exit code, and TEXT in its output or in the
# engine's commands.
expect() {
  local code=0 want=$1 text=$2
  shift 2
  : >"$work/told"
  env "$@" "$root/deploy/docker/build.sh" >"$work/said" 2>&1 || code=$?
  if ((code != want)) || ! grep -qF -- "$text" "$work/said" "$work/told"; then
    echo "build.sh with $*: exit code $code, $want wanted, with: $text"
    cat "$work/said" "$work/told"
    exit 1
  fi
}

expect 0 "slim.Dockerfile -t viaduct:0" BUILD_TARGET=slim
expect 0 "slim-python.Dockerfile -t viaduct-python:0" BUILD_TARGET=slim-python
expect 1 "verify_nixl_setup failed" BUILD_TARGET=slim-python FAIL=verify_nixl_setup
expect 0 "viaduct:1 is ready" TAG=viaduct:1
expect 0 "--build-arg CUDA_ARCH=100 --build-arg CUDA_ARCH_NAME=blackwell" BUILD_TARGET=full CUDA_ARCH_NAME=blackwell
expect 0 "--build-arg CUDA_ARCH=90a" BUILD_TARGET=full CUDA_ARCH=90a
expect 0 "push viaduct:1" TAG=viaduct:1 PUSH=yes
expect 1 "nixlbench-test failed" PUSH=yes FAIL=nixlbench-test
if grep -q push "$work/told"; then echo "an image that was not verified was pushed"; exit 1; fi
expect 0 "save -o $work/saved/viaduct-1.tar there/viaduct:1" TAG=there/viaduct:1 SAVE="$work/saved"
expect 1 "save -o" TAG=viaduct:1 SAVE="$work/saved" FAIL=save
expect 2 "BUILD_TARGET is slim, slim-python or full" BUILD_TARGET=big
expect 2 "CUDA_ARCH_NAME is ampere" BUILD_TARGET=full CUDA_ARCH_NAME=volta
expect 2 "TAG is NAME:TAG" TAG=viaduct
expect 2 "neither docker nor podman nor buildah" ENGINE=no-such-engine
