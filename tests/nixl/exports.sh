#!/bin/bash
# usage: exports.sh LIBRARY PROGRAM HEADER
# The library exports exactly the functions that the header declares and the program calls, and has
# the SONAME with which Rust programs open it.
set -euo pipefail
library=$1 program=$2 header=$3
number=102

exported=$(nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort)
called=$(nm -D --undefined-only "$program" | awk '{ print $2 }' | sed 's/@.*//' | grep '^nixl_capi_' | sort)
declared=$(grep -oE '\bnixl_capi_[a-z_]+\(' "$header" | tr -d '(' | sort)
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')

fail() { echo "$*" >&2; exit 1; }
[ "$(wc -l <<< "$exported")" = $number ] || fail "exported, in place of $number functions: $exported"
diff <(echo "$exported") <(echo "$declared") || fail "the library and its header differ"
diff <(echo "$exported") <(echo "$called") || fail "the program does not call all functions"
[ "$soname" = libnixl_capi.so ] || fail "the SONAME is $soname"
[[ $(readelf -d "$library") == *NODELETE* ]] || fail "dlclose() would unmap the code of threads that still run"
