#!/usr/bin/env bash
# Takes the files that viaduct-suite or viaduct-doctor-node printed out of logs on standard input.
#
#   kubectl logs viaduct-bench-0-abcde | deploy/collect-results.sh FOLDER
#
# exit: 0 every file is whole; 1 one is not, and is left out; 2 wrong use.
set -euo pipefail
folder=${1:?usage: collect-results.sh FOLDER <LOG}
mkdir -p -- "$folder"
begin='^-----BEGIN VIADUCT FILE ([A-Za-z0-9._-]+) ([0-9]+) ([0-9a-f]{64})-----$'
name='' code=0

broken() {
  echo "collect-results: $1: left out: $2" >&2
  rm -f -- "$folder/$1.part"
  code=1
}
# The newline before the end mark belongs to the mark.
finish() {
  local have
  truncate -s "-1" "$folder/$name.part"
  have=$(sha256sum <"$folder/$name.part")
  if [[ ${have%% *} == "$hash" ]]; then
    mv -- "$folder/$name.part" "$folder/$name"
    echo "$folder/$name"
  else
    broken "$name" "$(stat -c %s "$folder/$name.part") of $bytes bytes, or other ones: the log was cut or mixed"
  fi
  name=
}

while IFS= read -r line || [[ -n $line ]]; do
  if [[ $line =~ $begin ]]; then
    if [[ -n $name ]]; then broken "$name" "another file begins before its end"; fi
    name=${BASH_REMATCH[1]} bytes=${BASH_REMATCH[2]} hash=${BASH_REMATCH[3]}
    : >"$folder/$name.part"
  elif [[ -n $name && $line == "-----END VIADUCT FILE $name-----" ]]; then
    finish
  elif [[ -n $name ]]; then
    printf '%s\n' "$line" >>"$folder/$name.part"
  fi
done
if [[ -n $name ]]; then broken "$name" "the log ends before the file does: its pod died half-way, or the log was cut"; fi
exit "$code"
