#!/usr/bin/env bash
# Builds the images `slim` and `slim-python` without a container engine, on a new Debian 12 in place of
# debian:12-slim. Runs their programs, adds slim to an image without a C library, and executes the steps of
# efa-cuda.Dockerfile that need no GPU vendor's download.
#
#   tests/images/run.sh        as root
#
# exit: 0 all passed; 1 one failed; 77 skipped, because this machine lacks a program, which it names.
# VIADUCT_IMAGE_PROGRAM=FILE and VIADUCT_IMAGE_WHEELS=FOLDER (from ./dev wheel) replace new builds,
# which saves most of the time.
# It writes only to build/images/.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
source=$PWD work=$PWD/build/images

skip() {
  echo "skipped: $*"
  exit 77
}
((EUID == 0)) || skip "images are built as root here"
for tool in buildah debootstrap busybox; do
  command -v "$tool" >/dev/null || skip "there is no $tool (Debian: buildah, debootstrap, busybox-static)"
done
[[ -z $(ldd "$(command -v busybox)" 2>/dev/null) ]] || skip "busybox is not the one of busybox-static"
sources=$(tools/apt_sources.sh debian bookworm)
[[ -n $sources ]] || skip "this machine's apt does not have Debian 12"

rm -rf --one-file-system -- "$work"
mkdir -p "$work/run"
cat >"$work/storage.conf" <<TEXT
[storage]
driver = "vfs"
graphroot = "$work/store"
runroot = "$work/run"
TEXT
export CONTAINERS_STORAGE_CONF=$work/storage.conf BUILDAH_ISOLATION=chroot ENGINE=buildah
# shellcheck source=deploy/docker/engine.sh
. deploy/docker/engine.sh

# import NAME FOLDER: makes an image of one layer.
import() {
  local container
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$2" / >/dev/null
  buildah commit --quiet --rm "$container" "$1" >/dev/null
}

# Makes the packages of debian:12-slim, and this machine's apt sources.
make_base() {
  local root=$work/root
  mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
  printf 'path-exclude /usr/share/%s/*\n' doc man locale info lintian >"$root/etc/dpkg/dpkg.cfg.d/slim"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$(awk '$3 == "bookworm" { print $2; exit }' <<<"$sources")"
  printf '%s\n' "$sources" >"$root/etc/apt/sources.list"
  apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/00host" || true
  mkdir -p "$root/etc/apt/auth.conf.d"
  cp /etc/apt/auth.conf.d/* "$root/etc/apt/auth.conf.d/" 2>/dev/null || true
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb \
    "$root"/usr/share/{doc,man,locale,info}/* "$root"/var/log/*
  import localhost/debian:12-slim "$root"
  rm -rf --one-file-system -- "$root"
}

# Makes a Dockerfile whose first stage copies the given program instead of compiling one.
use_program() {
  mkdir -p "$work/context"
  git -C "$source" archive HEAD deploy LICENSE CMakeLists.txt | tar -x -C "$work/context"
  cp -- "$VIADUCT_IMAGE_PROGRAM" "$work/context/program"
  # Runs the commands of the first stage, without packages and compiler.
  awk '/^FROM/ { stage++ }
       stage == 1 && /^RUN apt-get/ { skip = 1 }
       stage == 1 && /^RUN cmake/ { print "RUN install -D /source/program /out/usr/local/bin/viaduct \\"; skip = 1 }
       skip && / && ln -s viaduct/ { skip = 0 }
       /^COPY/ { skip = 0 }
       !skip { print }' "$source/deploy/docker/slim.Dockerfile" >"$work/context/deploy/docker/slim.Dockerfile"
  strip "$work/context/program"
}

step() {
  local start=$SECONDS
  echo "-- $1"
  # Runs outside the condition, because `set -e` has no effect inside one.
  "${@:2}" >"$work/log" 2>&1 &
  if wait $!; then
    echo "   ok ($((SECONDS - start)) s)"
  else
    tail -n 30 "$work/log"
    echo "-- $1: FAILED"
    exit 1
  fi
}

build_slim() {
  local folder=$source
  if [[ -n ${VIADUCT_IMAGE_PROGRAM:-} ]]; then
    use_program
    folder=$work/context
  fi
  BASE=localhost/debian:12-slim TAG=localhost/viaduct:test SAVE=$work/saved nice "$folder/deploy/docker/build.sh"
}

# The archive becomes the same image in another store.
archive_of_slim() {
  local id
  id=$(of_image '{{.FromImageID}}')
  buildah --root "$work/other" pull --quiet "docker-archive:$work/saved/viaduct-test.tar" >"$work/pulled"
  [[ -n $id && $(buildah --root "$work/other" inspect --type image --format '{{.FromImageID}}' localhost/viaduct:test) == "$id" ]]
}

in_slim() { image_run localhost/viaduct:test "$@"; }

size_of_slim() {
  local bytes
  bytes=$(image_compressed_bytes localhost/viaduct:test)
  echo "   $((bytes / 1000000)) MB compressed (to reach: 150)" | tee "$work/size"
  ((bytes <= 150000000))
}

backends_of_slim() {
  in_slim viaduct --version | grep 'local, .*ofi .*, tcp, ucx'
  in_slim sh -c 'ldd /usr/local/bin/viaduct | grep "not found"' && return 1
  in_slim viaduct bench --explain --backend local,tcp,ofi,ucx | tee "$work/explain"
  ! grep -E '^ +- +(local|tcp|ofi|ucx) ' "$work/explain"
}

# of_image TEMPLATE: prints a part of the image's configuration.
of_image() { buildah inspect --type image --format "$1" localhost/viaduct:test; }
labels_of_slim() {
  local label
  for label in title description licenses version revision; do
    echo "$label: $(of_image "{{index .Docker.Config.Labels \"org.opencontainers.image.$label\"}}")"
  done | tee "$work/labels"
  ! grep -vE ': .+' "$work/labels" || return 1
  [[ $(in_slim viaduct --version) == "viaduct $(sed -n 's/^version: //p' "$work/labels") "* ]] || return 1
  # The health check is a command, which has to succeed in the image.
  local check
  check=$(of_image '{{range .Docker.Config.Healthcheck.Test}}{{.}} {{end}}')
  [[ $check == "CMD "* ]] || return 1
  # shellcheck disable=SC2086  # words
  in_slim ${check#CMD }
}

user_of_slim() { [[ $(in_slim id -u) == 65532 ]]; }

# The check makes a name resolvable late, in a mount namespace, which an ordinary user may not make
# here.
late_name_in_slim() {
  local container
  container=$(buildah from --pull-never localhost/viaduct:test)
  buildah run --user 0 "$container" -- nixlbench-test
  buildah rm "$container"
}

etcd_of_slim() {
  in_slim bash -ec 'etcd --data-dir=/tmp/etcd --listen-client-urls=http://127.0.0.1:24379 \
    --advertise-client-urls=http://127.0.0.1:24379 --listen-peer-urls=http://127.0.0.1:24380 >/dev/null 2>&1 &
    trap "kill $!" EXIT
    etcd-check http://127.0.0.1:24379'
}

# Makes slim-python.Dockerfile's first stage copy the given wheels instead of compiling.
use_wheels() {
  mkdir -p "$work/python"
  git -C "$source" archive HEAD deploy examples LICENSE CMakeLists.txt | tar -x -C "$work/python"
  cp -r -- "$VIADUCT_IMAGE_WHEELS" "$work/python/wheels"
  awk '/^(FROM|RUN|COPY|#)/ { skip = 0 }
       /^FROM/ { stage++ }
       stage == 1 && /^RUN apt-get/ { print "RUN apt-get update && apt-get install -y --no-install-recommends python3-pip"; skip = 1 }
       /^RUN.*viaduct_build.py/ { print "RUN cp -r /source/wheels /wheels"; skip = 1 }
       !skip { print }' "$source/deploy/docker/slim-python.Dockerfile" >"$work/python/deploy/docker/slim-python.Dockerfile"
}

build_slim_python() {
  local folder=$source
  if [[ -n ${VIADUCT_IMAGE_WHEELS:-} ]]; then
    use_wheels
    folder=$work/python
  fi
  BUILD_TARGET=slim-python BASE=localhost/debian:12-slim TAG=localhost/viaduct-python:test \
    nice "$folder/deploy/docker/build.sh"
}

in_slim_python() { image_run localhost/viaduct-python:test "$@"; }

size_of_slim_python() {
  local bytes
  bytes=$(image_compressed_bytes localhost/viaduct-python:test)
  echo "   $((bytes / 1000000)) MB compressed (to reach: 100)" | tee "$work/size"
  ((bytes <= 100000000))
}

backends_of_slim_python() {
  in_slim_python env VIADUCT_BACKENDS=local,tcp,ofi,ucx python3 -m viaduct.verify --json >"$work/verify"
  python3 -B - "$work/verify" <<'TEXT'
import json, sys
found = {one["name"]: one["text"] for one in json.load(open(sys.argv[1]))["backends"] if one["open"]}
assert found.keys() >= {"local", "tcp", "ofi", "ucx"}, found
TEXT
}

user_of_slim_python() { [[ $(in_slim_python id -u) == 65532 ]]; }

example_in_slim_python() {
  in_slim_python bash -ec 'viaduct-p2p --mode target --ip 127.0.0.1 >/tmp/said &
    trap "kill $!" EXIT
    viaduct-p2p --mode initiator --ip 127.0.0.1 --buffer_sizes 64K --timeout 60 | tee /dev/stderr | grep "^ *64K "'
}

# Adds slim to an image that contains only a static shell.
add_to_strange_image() {
  mkdir -p "$work/strange/bin" "$work/strange/tmp" "$work/strange/etc"
  cp "$(command -v busybox)" "$work/strange/bin/"
  ln -sf busybox "$work/strange/bin/sh"
  import localhost/strange:1 "$work/strange"
  VIADUCT_IMAGE=localhost/viaduct:test deploy/docker/add-to-image.sh localhost/strange:1 localhost/strange:2
  image_run localhost/strange:2 /opt/viaduct/viaduct exec -- sh -c 'echo started by viaduct'
  image_run localhost/strange:2 /opt/viaduct/nixlbench --local_workers=2 --backend=tcp --total_buffer_size=1048576 \
    --max_block_size=4096 --num_iter=16 --warmup_iter=16
}

# The RUN lines of efa-cuda.Dockerfile with their stage; continuation lines are joined.
run_lines() {
  awk '/^FROM/ { stage++ }
       /\\$/ { sub(/\\$/, ""); line = line $0; next }
       { line = line $0; if (line ~ /^RUN/) print stage "\t" substr(line, 5); line = "" }' deploy/docker/efa-cuda.Dockerfile
}
full_over_a_stand_in() {
  local stage line container='' now=0 ran=0 left=0
  while IFS=$'\t' read -r stage line; do
    if [[ $stage != "$now" ]]; then
      if [[ -n $container ]]; then buildah rm "$container" >/dev/null; fi
      container=$(buildah from --pull-never localhost/debian:12-slim)
      now=$stage
    fi
    case $line in
      curl*) echo "   not run, for want of the source: $(grep -o 'https://[^ ]*' <<<"$line")" >>"$work/not-run"; left=$((left + 1)) ;;
      cmake*) echo "   not run here, the same as in slim: cmake ..." >>"$work/not-run"; left=$((left + 1)) ;;
      *)
        # LIBFMT names fmt's package in the stand-in. Links may lead nowhere, because the fabrics
        # are missing.
        buildah run --env LIBFMT=libfmt9 "$container" -- sh -ec "$line" </dev/null
        ran=$((ran + 1))
        ;;
    esac
  done < <(run_lines)
  buildah rm "$container" >/dev/null
  echo "   $ran RUN lines were executed over Debian 12, $left were not" >>"$work/not-run"
}

step "a Debian 12 in the place of debian:12-slim" make_base
step "slim is built, and moves blocks" build_slim
step "slim is saved as an archive, and loaded again" archive_of_slim
step "slim is small enough" size_of_slim
cat "$work/size"
step "slim has four backends, which open" backends_of_slim
step "slim runs as an ordinary user" user_of_slim
step "slim has labels, and a check of its health that passes" labels_of_slim
step "two processes of slim meet at a name that comes late" late_name_in_slim
step "slim has an etcd, and its check" etcd_of_slim
step "Viaduct runs in an image without a C library" add_to_strange_image
step "slim-python is built, and moves blocks" build_slim_python
step "slim-python is small enough" size_of_slim_python
cat "$work/size"
step "slim-python has four backends, which open" backends_of_slim_python
step "slim-python runs as an ordinary user" user_of_slim_python
step "two processes of slim-python run the example" example_in_slim_python
step "efa-cuda over a stand-in" full_over_a_stand_in
cat "$work/not-run"
rm -rf --one-file-system -- "$work/store" "$work/other" "$work/saved"
