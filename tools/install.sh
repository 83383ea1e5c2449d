#!/usr/bin/env bash
# install.sh [--replace] BUILD [PREFIX]: installs the stripped results of BUILD into PREFIX (by default
# /usr/local for root, ~/.local for others). Refuses to replace files that it did not install.
# install.sh --remove [PREFIX]: removes what it installed there, by the list that it left: docs/install.md.
set -euo pipefail
what=install replace=no
while [[ ${1:-} == --* ]]; do
  case $1 in
    --replace) replace=yes ;;
    --remove) what=remove ;;
    *)
      echo "install: what is '$1'? Known are --replace, and a folder" >&2
      exit 2
      ;;
  esac
  shift
done
if [[ $what == install ]]; then
  build=$1
  shift
fi
prefix=${1:-}
if [[ -z $prefix ]]; then ((EUID == 0)) && prefix=/usr/local || prefix=$HOME/.local; fi
prefix=$(realpath -m -- "$prefix")
list=share/viaduct/installed  # a line for each file: its fingerprint and its path below the prefix

fingerprint() { if [[ -L $1 ]]; then echo "to:$(readlink -- "$1")"; else sha256sum <"$1" | cut -d ' ' -f 1; fi; }
declare -A ours=()
read_list() {
  local print path
  [[ -r $prefix/$list ]] || return 0
  while read -r print path; do ours[$path]=$print; done <"$prefix/$list"
}

root=()
may_write() {
  [[ -w $prefix ]] && return
  command -v sudo >/dev/null || {
    echo "You may not write to $prefix, and there is no sudo. Name another folder, or be root." >&2
    exit 1
  }
  root=(sudo)
  echo "(sudo, because you may not write to $prefix)"
}

remove() {
  read_list
  if ((${#ours[@]} == 0)); then
    echo "Nothing of Viaduct is installed in $prefix: $prefix/$list does not exist. Nothing was removed." >&2
    exit 1
  fi
  may_write
  local path kept=() gone=() folder
  for path in "${!ours[@]}"; do
    [[ -e $prefix/$path || -L $prefix/$path ]] || continue
    if [[ $(fingerprint "$prefix/$path") == "${ours[$path]}" ]]; then gone+=("$prefix/$path"); else kept+=("$path"); fi
  done
  printf '%s\0' "${gone[@]}" "$prefix/$list" | "${root[@]}" xargs -0 rm -f --
  # Removes the folders that are empty now, except the prefix and folders that others share.
  for path in "${!ours[@]}" "$list"; do
    folder=$(dirname -- "$path")
    while [[ $folder != . && -d $prefix/$folder && $folder == *viaduct* ]]; do
      "${root[@]}" rmdir -- "$prefix/$folder" 2>/dev/null || break
      folder=$(dirname -- "$folder")
    done
  done
  echo "Removed ${#gone[@]} files from $prefix."
  ((${#kept[@]})) || return 0
  echo "Kept, because somebody changed them since:"
  printf '  %s\n' "${kept[@]}"
}

refuse_foreign_files() {
  local path print foreign=()
  for path in "${files[@]}"; do
    [[ -e $prefix/$path || -L $prefix/$path ]] || continue
    print=$(fingerprint "$prefix/$path")
    [[ $print == "${ours[$path]:-}" || $print == $(fingerprint "$stage$prefix/$path") ]] || foreign+=("$path")
  done
  ((${#foreign[@]})) || return 0
  {
    echo "$prefix has files that this script did not install, or that somebody changed since:"
    printf '  %s\n' "${foreign[@]:0:10}"
    if ((${#foreign[@]} > 10)); then echo "  and $((${#foreign[@]} - 10)) more"; fi
    echo "Nothing was installed. Name another folder, or replace them: ./dev install --replace $prefix"
  } >&2
  exit 1
}

# Installs into a new folder, and copies from there when nothing stands in the way.
install() {
  local log path
  read_list
  stage=$(mktemp -d)
  trap 'rm -rf -- "$stage"' EXIT
  rm -f -- "$build/install_manifest.txt"  # another user may have written it
  log=$(DESTDIR=$stage cmake --install "$build" --strip --prefix "$prefix") || {
    echo "$log" >&2
    exit 1
  }
  mapfile -t files <"$build/install_manifest.txt"
  files=("${files[@]#"$prefix/"}")
  if [[ $replace == no ]]; then refuse_foreign_files; fi
  mkdir -p -- "$stage$prefix/$(dirname -- "$list")"
  for path in "${files[@]}"; do printf '%s %s\n' "$(fingerprint "$stage$prefix/$path")" "$path"; done \
    >"$stage$prefix/$list"
  mkdir -p -- "$prefix" 2>/dev/null || true
  may_write
  "${root[@]}" mkdir -p -- "$prefix"
  tar -c -C "$stage$prefix" . |
    "${root[@]}" tar -x -C "$prefix" --no-same-owner --keep-directory-symlink --no-overwrite-dir
  say_what_is_there
}

say_what_is_there() {
  # Lists a folder that only we use in place of its files.
  local installed pkgconfig examples
  mapfile -t installed < <(printf '%s\n' "${files[@]}" "$list" | sed 's,/viaduct/.*,/viaduct,' | sort -u)
  pkgconfig=$(printf '%s\n' "${installed[@]}" | sed -n 's,/viaduct\.pc$,,p')
  examples=$(printf '%s\n' "${installed[@]}" | grep '^share/doc/')/examples

  echo "Installed into $prefix:"
  printf '  %s\n' "${installed[@]}"
  if [[ $prefix == /usr/local ]]; then
    echo "Shells, CMake and pkg-config look there by themselves."
  else
    echo "To find it:"
    # shellcheck disable=SC2016  # the user's shell expands it
    printf '  export PATH=%q:$PATH\n' "$prefix/bin"
    printf '  export CMAKE_PREFIX_PATH=%q\n' "$prefix"
    printf '  export PKG_CONFIG_PATH=%q\n' "$prefix/$pkgconfig"
  fi
  echo "To try it:"
  # shellcheck disable=SC2016  # the user's shell expands it
  printf '  c++ -std=c++20 %q $(pkg-config --cflags --libs viaduct) -o hello && ./hello\n' \
    "$prefix/$examples/hello_transfer.cc"
  echo "To remove it:"
  printf '  ./dev uninstall %q\n' "$prefix"
}

$what
