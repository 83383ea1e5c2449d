#!/usr/bin/env bash
# pages.sh WHAT PROGRAM: checks that the manual pages and completions that PROGRAM writes cover its
# commands and flags. Exit code 77: the machine lacks a program for it.
set -euo pipefail
what=$1 program=$2
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
"$program" help --pages "$folder"
# Both names of the program, as the package installs them.
mkdir "$folder/bin"
for name in viaduct nixlbench; do ln -s "$program" "$folder/bin/$name"; done
PATH=$folder/bin:$PATH

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}
need() {
  command -v "$1" >/dev/null || {
    echo "skipped: no $1"
    exit 77
  }
}
# The flags and commands in the help of a command.
flags_of() { "$@" --help | sed -nE 's/^  ((-[-a-z_A-Z0-9]+,?)+)( .*)?$/\1/p' | tr , '\n'; }
commands() { viaduct --help | sed -n '/^Subcommands:/,$s/^  \([a-z0-9]\+\) .*/\1/p'; }

# expect_offers WANTED WORD...: the candidates for the last word include WANTED.
expect_offers() {
  local offered
  offered=$(offers "${@:2}")
  grep -qxF -e "$1" <<<"$offered" || fail "${*:2}<TAB> does not offer $1: ${offered//$'\n'/ }"
}
expect_completion() {
  expect_offers bench viaduct ben
  expect_offers snapshot viaduct doctor sn
  expect_offers size viaduct kv s
  expect_offers --tokens viaduct kv size --to
  expect_offers --working-set viaduct bench --work
  expect_offers read viaduct bench --op ''
  expect_offers alltoall viaduct pattern a
  expect_offers Llama-3.1-8B viaduct kv bench L
  expect_offers --overwrite viaduct pipeline --over
  expect_offers initiator viaduct p2p --mode i
  expect_offers k8s viaduct env --format k
  expect_offers zsh viaduct completion z
  expect_offers tcp viaduct bench --backend ''
  expect_offers UCX nixlbench --backend U
  expect_offers roce viaduct doctor --only r
  expect_offers inject viaduct suite --tests i
  expect_offers DeepSeek-V3 viaduct kv size D
  expect_offers doctor viaduct help d
  expect_offers --op_type nixlbench --op_t
  expect_offers pairwise nixlbench --scheme p
  local command flag
  for command in $(commands); do
    expect_offers "$command" viaduct "${command:0:1}"
    for flag in $(flags_of viaduct "$command" | grep -e '^--'); do
      [[ $command == help || $command == version ]] ||
        expect_offers "$flag" viaduct "$command" "${flag:0:3}"
    done
  done
}

case $what in
  manuals)
    need groff
    ((($(commands | wc -l)) > 9)) || fail "no commands in the help"
    for page in "$folder"/man1/*; do
      warnings=$(groff -ww -man -Tutf8 -rLL=80n "$page" 2>&1 >"$folder/shown")
      [[ -z $warnings ]] || fail "$warnings"
      [[ $(wc -l <"$folder/shown") -gt 10 ]] || fail "$page is empty"
    done
    for command in $(commands); do
      [[ $command == help || $command == version ]] && continue
      page=$folder/man1/viaduct-$command.1
      [[ -s $page ]] || fail "there is no page of $command"
      for flag in $(flags_of viaduct "$command"); do
        grep -qF -e "\\fB${flag//-/\\-}\\fR" "$page" || fail "the page of $command lacks $flag"
      done
      grep -qF "viaduct\\-$command" "$folder/man1/viaduct.1" || fail "viaduct(1) lacks $command"
    done
    grep -qF -e '\fB\-\-output\fR' "$folder/man1/viaduct-doctor-snapshot.1" || fail "snapshot has no page"
    for flag in $(flags_of nixlbench); do
      grep -qF -e "\\fB${flag//-/\\-}\\fR" "$folder/man1/nixlbench.1" || fail "nixlbench(1) lacks $flag"
    done
    ;;
  bash)
    # shellcheck disable=SC1091
    source "$folder/viaduct.bash"
    complete -p viaduct nixlbench >/dev/null
    offers() {
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
      _viaduct "$1" "${COMP_WORDS[COMP_CWORD]}" "" || true
      printf '%s\n' "${COMPREPLY[@]}"
    }
    expect_completion
    expect_offers read viaduct bench --op = r
    expect_offers DRAM viaduct bench -target_seg_type D
    expect_offers "$folder/viaduct.fish" viaduct bench --json "$folder/viaduct.f"
    expect_offers "$folder/viaduct.fish" viaduct report "$folder/viaduct.f"
    ;;
  fish)
    need fish
    export XDG_CONFIG_HOME=$folder XDG_DATA_HOME=$folder
    # One fish process answers all queries, because it starts slowly.
    coproc FISH { fish --private -c "source $folder/viaduct.fish; while read -l line; complete -C \$line; echo END; end" 2>"$folder/errors"; }
    offers() {
      local line
      printf '%s\n' "$*" >&"${FISH[1]}"
      while IFS= read -r line <&"${FISH[0]}" && [[ $line != END ]]; do printf '%s\n' "${line%%$'\t'*}"; done
    }
    expect_completion
    [[ ! -s $folder/errors ]] || fail "$(cat "$folder/errors")"
    ;;
  zsh)
    need zsh
    zsh -f -n "$folder/viaduct.zsh"
    # Loads the file as a shell does. The file has a function for each command.
    zsh -f -c "autoload -Uz compinit && compinit -u -D && fpath=($folder \$fpath) &&
      cp $folder/viaduct.zsh $folder/_viaduct && autoload -Uz _viaduct && autoload +X _viaduct" || fail "zsh cannot load it"
    for command in $(commands); do
      [[ $command == help || $command == version ]] && continue
      told=$(sed -n "/^__viaduct-$command() /,/^}/p" "$folder/viaduct.zsh")
      for flag in $(flags_of viaduct "$command" | grep -e '^--'); do
        [[ $told == *"'*${flag}["* ]] || fail "zsh is not told of $command $flag"
      done
    done
    ;;
esac
