#!/usr/bin/env bash
# engine_library.sh FILE...: fails if a library or module that engines load contains code of the benchmark, of
# its groups or of the doctor, or starts with more shared libraries than it needs.
set -euo pipefail
for file in "$@"; do
  # Lists both kinds of symbols: a stripped library has only dynamic ones, and the module exports
  # none of Viaduct's.
  symbols=$({ nm --demangle --defined-only "$file" && nm --demangle --dynamic --defined-only "$file"; } 2>/dev/null || true)
  case $file in
    *libviaduct*)
      grep -q 'viaduct::core::' <<<"$symbols" || { echo "$file: no symbols to look at" >&2; exit 1; }
      ;;
  esac
  if grep -m3 -E 'viaduct::((measure|diag|app|meet::groups)::|meet::(Group|GroupPlace|EmbeddedServer)\>)' <<<"$symbols" >&2; then
    echo "$file contains code of the benchmark, of its groups or of the doctor" >&2
    exit 1
  fi
  needed=$(readelf --dynamic "$file" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  if grep -vE '^(lib(viaduct|fmt|crypto|stdc\+\+|gcc_s|c|m)\.so\.|ld-linux|lib[atu].*san\.|libclang_rt|$)' <<<"$needed" >&2; then
    echo "$file starts with more libraries than it needs" >&2
    exit 1
  fi
done
