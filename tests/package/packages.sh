#!/usr/bin/env bash
# packages.sh make|look BUILD: makes the Debian packages of BUILD, or checks them. Exit code 77: the
# machine lacks a program for it.
set -euo pipefail
what=$1 build=$2 folder=$2/package
for program in cpack dpkg-deb dpkg-shlibdeps file; do
  command -v $program >/dev/null || {
    echo "skipped: no $program"
    exit 77
  }
done

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}
package() { # NAME: prints its file
  local files=("$folder/$1"_*.deb)
  [[ -e ${files[0]} && ${#files[@]} == 1 ]] || fail "not one package $1: ${files[*]}"
  printf '%s\n' "${files[0]}"
}
field() { dpkg-deb --field "$(package "$1")" "$2"; }
contents() { dpkg-deb --contents "$(package "$1")" | awk '{print $6}'; }
expect_file() { # PACKAGE PATTERN...
  local list pattern
  list=$(contents "$1")
  for pattern in "${@:2}"; do
    grep -qE -e "^\./usr/$pattern\$" <<<"$list" || fail "$1 has no $pattern"
  done
}
expect_no_file() {
  ! grep -E -e "$2" <<<"$(contents "$1")" || fail "$1 has files of another package"
}
expect_depends() {
  local depends
  depends=$(field "$1" Depends)
  for name in "${@:2}"; do
    [[ ", $depends" == *", $name "* || ", $depends," == *", $name,"* ]] || fail "$1 depends on: $depends; not on $name"
  done
}

if [[ $what == make ]]; then
  rm -rf -- "$folder"
  # With a strict umask, as root may have it, the packaged files must still be readable for
  # everybody.
  (umask 077 && cpack --config "$build/CPackConfig.cmake" -B "$folder")
  rm -rf -- "$folder/_CPack_Packages"
  exit
fi

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:.*=//p' "$build/CMakeCache.txt")
for name in viaduct libviaduct libviaduct-dev libviaduct-nixl python3-viaduct; do
  [[ $(field $name Package) == "$name" ]] || fail "$name is called otherwise"
  [[ $(field $name Version) == "$version" ]] || fail "$name has another version than $version"
  [[ $(field $name Architecture) == "$(dpkg --print-architecture)" ]] || fail "$name is for another processor"
  for one in Maintainer Section Description Installed-Size Depends; do
    [[ -n $(field $name $one) ]] || fail "$name has no field $one"
  done
  expect_file $name "share/doc/$name/copyright"
  # No files outside /usr, none that only root can read, and none of another owner.
  expect_no_file $name '^\./(etc|var|opt|home|usr/local|root|work)'
  [[ -z $(dpkg-deb --info "$(package $name)" conffiles 2>/dev/null || true) ]] || fail "$name has conffiles"
  listing=$(dpkg-deb --contents "$(package $name)")
  odd=$(grep -vE '^(drwxr-xr-x|-rwxr-xr-x|-rw-r--r--|lrwxrwxrwx) root/root ' <<<"$listing" || true)
  [[ -z $odd ]] || fail "$name has odd rights: $odd"
done

library='lib/([^/]+/)?'
expect_file viaduct bin/viaduct bin/nixlbench share/man/man1/viaduct.1.gz share/man/man1/viaduct-bench.1.gz \
  share/man/man1/nixlbench.1.gz share/bash-completion/completions/viaduct share/zsh/site-functions/_viaduct \
  share/fish/vendor_completions.d/viaduct.fish share/doc/viaduct/docs/install.md
expect_no_file viaduct 'include|lib/'
expect_file libviaduct "${library}libviaduct.so.0" "${library}libviaduct.so.${version//./\\.}"
expect_no_file libviaduct 'bin/|include|\.so$|\.a$|pkgconfig'
expect_file libviaduct-dev include/viaduct/c.h include/viaduct/viaduct.h "${library}libviaduct.so" \
  "${library}pkgconfig/viaduct.pc" "${library}cmake/viaduct/viaductConfig.cmake" share/doc/viaduct/examples/pair.c
expect_no_file libviaduct-dev 'bin/|\.so\.'
module=lib/python3/dist-packages/viaduct
expect_file python3-viaduct "$module/__init__.py" "$module/verify.py" "$module/_core\.cpython-.*\.so" \
  "$module-${version//./\\.}\.dist-info/METADATA" bin/verify_nixl_setup
expect_no_file python3-viaduct 'include|__pycache__|dist-packages/nixl|libviaduct'
expect_file libviaduct-nixl "${library}viaduct/libnixl_capi.so" include/viaduct/nixl_capi.h
expect_no_file libviaduct-nixl 'bin/|libviaduct\.'
expect_depends libviaduct-nixl libc6 libstdc++6
expect_depends viaduct libc6 libstdc++6
expect_depends python3-viaduct libc6 libstdc++6
python=$(sed -n 's/.*_core\.cpython-3\([0-9]*\)-.*/\1/p' <<<"$(contents python3-viaduct)")
[[ $(field python3-viaduct Depends) == *"python3 (>= 3.$python), python3 (<< 3.$((python + 1)))"* ]] ||
  fail "python3-viaduct takes another Python than its module is for: $(field python3-viaduct Depends)"
expect_depends libviaduct libc6 libstdc++6
expect_depends libviaduct-dev libviaduct
[[ $(field libviaduct-dev Depends) == "libviaduct (= $version)" ]] || fail "libviaduct-dev takes any libviaduct"
for name in viaduct libviaduct libviaduct-nixl python3-viaduct; do
  ! grep -E 'libfabric|libucx|libcurl|libviaduct' <<<"$(field $name Depends)" ||
    fail "a library that is loaded at run time is a dependency of $name"
done

# All functions of the C interface, and only these, have the symbol version that never changes.
root=$(mktemp -d)
trap 'rm -rf -- "$root"' EXIT
dpkg-deb --extract "$(package libviaduct)" "$root"
dpkg-deb --extract "$(package libviaduct-dev)" "$root"
dpkg-deb --extract "$(package python3-viaduct)" "$root"
dpkg-deb --extract "$(package libviaduct-nixl)" "$root"
"$(dirname -- "$0")/../install/engine_library.sh" "$root"/usr/lib/*/libviaduct.so.0 "$root"/usr/lib/*/viaduct/libnixl_capi.so \
  "$root"/usr/lib/python3/dist-packages/viaduct/_core.*.so
versioned=$(nm --dynamic --defined-only "$(echo "$root"/usr/lib/*/libviaduct.so.0)" | sed -n 's/.* \(.*\)@@VIADUCT_C_1$/\1/p' | sort)
declared=$(sed 's,/\*.*\*/,,' "$root/usr/include/viaduct/c.h" |
  grep -oE '\bviaduct_[a-z_]+\(' | tr -d '(' | sort -u | grep -v '^viaduct_sized$')
[[ -n $declared ]] || fail "no function is found in c.h"
diff <(echo "$declared") <(echo "$versioned") || fail "c.h and the symbols VIADUCT_C_1 differ"
