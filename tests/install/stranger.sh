#!/usr/bin/env bash
# stranger.sh WHAT DIR BUILD: one action of a user with the installation in DIR/prefix; `tree`
# installs it from BUILD. Uses the compiler $CXX and $CXXFLAGS.
set -euo pipefail
here=$(cd -- "$(dirname -- "$0")" && pwd)
what=$1 out=$2/$1 prefix=$2/prefix build=$3
examples=$prefix/share/doc/viaduct/examples install=$here/../../tools/install.sh
rm -rf -- "$out"
mkdir -p -- "$out"

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# A program that moves blocks loads few libraries; those of a sanitizer do not count.
expect_few_libraries() {
  ldd "$1"
  local count
  count=$(ldd "$1" | grep -cv 'linux-vdso\|lib[atu].*san\.')
  ((count <= 8)) || fail "$1 starts with $count shared libraries"
}

expect_stripped() {
  if readelf --section-headers --wide "$1" | grep -F .debug_; then fail "$1 is not stripped"; fi
}

# Two processes of the program exchange blocks and notes.
expect_a_pair() {
  "$1" receiver "$out/card" &
  "$1" sender "$out/card"
  wait $!
}

case $what in
  tree)
    rm -rf -- "$prefix"
    "$install" "$build" "$prefix" | tee "$out/said"
    ;;
  content)
    for one in "$prefix"/lib*/libviaduct.* "$prefix"/lib*/viaduct/libnixl_capi.so "$prefix/bin/viaduct"; do
      expect_stripped "$one"
    done
    [[ -s $prefix/include/viaduct/nixl_capi.h ]] || fail "there is no header of NIXL's C library"
    [[ $("$prefix/bin/viaduct" exec --nixl -- printenv KVBM_NIXL_CAPI_LIB 2>/dev/null) == \
      "$(echo "$prefix"/lib*/viaduct/libnixl_capi.so)" ]] || fail "exec --nixl does not find the library"
    for one in doc/viaduct/{LICENSE,README.md,docs/install.md,examples/{hello_transfer.cc,pair.c}} \
      man/man1/viaduct{,-bench}.1 bash-completion/completions/viaduct zsh/site-functions/_viaduct \
      fish/vendor_completions.d/viaduct.fish; do
      [[ -s $prefix/share/$one ]] || fail "share has no $one"
    done
    python3 -B "$here/../../tools/check_docs.py" "$prefix/share/doc/viaduct"
    ;;
  library)
    "$here/engine_library.sh" "$prefix"/lib*/libviaduct.* "$prefix"/lib*/viaduct/libnixl_capi.so
    ;;
  find_package)
    cmake -G Ninja -S "$examples" -B "$out" -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$out"
    ctest --test-dir "$out" --output-on-failure
    expect_few_libraries "$out/hello_transfer"
    ;;
  cxx17)  # the headers' error says so, and pkg-config names the standard
    grep -q '^Description: .*-std=c++20' "$(find "$prefix" -name viaduct.pc)"
    echo '#include <viaduct/viaduct.h>' >"$out/old.cc"
    if "$CXX" -std=c++17 -I"$prefix/include" -fsyntax-only "$out/old.cc" 2>"$out/errors"; then
      fail "C++17 was accepted"
    fi
    grep -m1 "error: .*Viaduct's headers need C++20: compile with -std=c++20" "$out/errors"
    ;;
  pkg_config)
    PKG_CONFIG_PATH=$(dirname -- "$(find "$prefix" -name viaduct.pc)")
    export PKG_CONFIG_PATH
    # eval undoes the escapes that pkg-config puts into a prefix with spaces.
    eval "flags=($CXXFLAGS $(pkg-config --cflags --libs viaduct))"
    # shellcheck disable=SC2154  # eval sets it
    "$CXX" -std=c++20 "$examples/hello_transfer.cc" "${flags[@]}" \
      "-Wl,-rpath,$(dirname -- "$PKG_CONFIG_PATH")" -o "$out/stranger"
    "$out/stranger"
    expect_few_libraries "$out/stranger"
    ;;
  c_find_package)  # a project in C alone, which looks for no C++ compiler
    cat >"$out/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.22)
project(stranger LANGUAGES C)
find_package(viaduct 0.1 REQUIRED)
add_executable(stranger $examples/pair.c)
target_link_libraries(stranger PRIVATE viaduct::viaduct)
target_compile_options(stranger PRIVATE -std=c11 -Wall -Wextra -pedantic -Werror)
TEXT
    cmake -G Ninja -S "$out" -B "$out/build" -DCMAKE_PREFIX_PATH="$prefix" "-DCMAKE_C_FLAGS=$CXXFLAGS"
    if grep CMAKE_CXX_COMPILER "$out/build/CMakeCache.txt"; then fail "C++ was asked for"; fi
    cmake --build "$out/build"
    expect_a_pair "$out/build/stranger"
    ;;
  c_pkg_config)
    PKG_CONFIG_PATH=$(dirname -- "$(find "$prefix" -name viaduct.pc)")
    export PKG_CONFIG_PATH
    eval "flags=($CXXFLAGS $(pkg-config --cflags --libs viaduct))"
    "${CC:-cc}" -std=c11 -Wall -Wextra -pedantic -Werror "$examples/pair.c" "${flags[@]}" \
      "-Wl,-rpath,$(dirname -- "$PKG_CONFIG_PATH")" -o "$out/stranger"
    expect_a_pair "$out/stranger"
    expect_few_libraries "$out/stranger"
    ;;
  again)  # replaces its own files, and no other's; shown with a small build, which installs at once
    cat >"$out/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.22)
project(small LANGUAGES NONE)
install(PROGRAMS viaduct DESTINATION bin)
install(CODE "file(CREATE_LINK viaduct \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/nixlbench\" SYMBOLIC)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/bin/nixlbench\")")
install(DIRECTORY examples DESTINATION share/doc/viaduct)
install(FILES viaduct.pc DESTINATION lib/pkgconfig)
TEXT
    mkdir "$out/examples"
    touch "$out/viaduct" "$out/viaduct.pc" "$out/examples/hello_transfer.cc"
    build=$out/build prefix=$out/prefix
    cmake -S "$out" -B "$build" >"$out/log"
    "$install" "$build" "$prefix" >"$out/said"
    echo newer >"$out/viaduct"
    "$install" "$build" "$prefix" >"$out/said"
    [[ $(cat "$prefix/bin/viaduct") == newer ]] || fail "an older file of its own stayed"
    rm -- "$prefix/bin/nixlbench"
    echo foreign >"$prefix/bin/nixlbench"
    rm -- "$prefix/bin/viaduct"
    if "$install" "$build" "$prefix" 2>"$out/refused"; then fail "a foreign file was replaced"; fi
    grep -qx '  bin/nixlbench' "$out/refused" || fail "$(cat "$out/refused")"
    [[ $(cat "$prefix/bin/nixlbench") == foreign && ! -e $prefix/bin/viaduct ]] ||
      fail "something was installed"
    "$install" --remove "$prefix" | tee "$out/removed"
    [[ $(find "$prefix" ! -type d) == "$prefix/bin/nixlbench" ]] ||
      fail "left: $(find "$prefix" ! -type d)"
    if "$install" --remove "$prefix" 2>"$out/refused"; then fail "nothing was removed, and it said so"; fi
    "$install" --replace "$build" "$prefix" >"$out/said"
    [[ -L $prefix/bin/nixlbench ]] || fail "--replace did not replace"
    "$install" --remove "$prefix"
    ;;
  remove)
    command=$(sed -n '/^To remove it:/{n;p}' "$2/tree/said")
    (cd -- "$here/../.." && eval "$command")
    left=$(find "$prefix" ! -type d)
    [[ -z $left ]] || fail "left behind: $left"
    [[ ! -e $prefix/include/viaduct && ! -e $prefix/share/viaduct ]] || fail "folders of ours are left"
    ;;
esac
