// Generates completions for bash, zsh and fish.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "measure/result/text.h"
#include "viaduct/command_page.h"
#include "viaduct/completion_words.h"

namespace viaduct::app {
namespace {

using measure::replaceAll;
using Pages = std::vector<const CommandPage*>;

void collect(const CommandPage& page, Pages& into) {
  into.push_back(&page);
  for (const CommandPage& command : page.commands) collect(command, into);
}

// Returns every page, with the pages of nested commands.
Pages allPages(const CommandPage& root, std::span<const CommandPage> others) {
  Pages pages;
  collect(root, pages);
  for (const CommandPage& other : others) collect(other, pages);
  return pages;
}

std::vector<std::string> commandNames(const CommandPage& page) {
  std::vector<std::string> names;
  names.reserve(page.commands.size());
  for (const CommandPage& command : page.commands)
    names.push_back(command.name.substr(page.name.size() + 1));
  return names;
}

template <class F>
void eachFlag(const CommandPage& page, F&& use) {
  for (const PageSection& section : page.sections)
    for (const PageEntry& entry : section.entries)
      if (entry.names.front().starts_with('-')) use(entry);
}

// Calls `use` for each argument without a dash: a file, or one of several words.
template <class F>
void eachArgument(const CommandPage& page, F&& use) {
  for (const PageSection& section : page.sections)
    for (const PageEntry& entry : section.entries)
      if (!entry.names.front().starts_with('-') && !entry.form.empty()) use(entry);
}

bool takesFile(std::string_view form) {
  constexpr std::array<std::string_view, 4> kFiles{"FILE", "FILES", "PATH", "DIR"};
  return std::find(kFiles.begin(), kFiles.end(), form.substr(0, form.find(' '))) != kFiles.end();
}

// Returns the completion of a flag's value: its words, `files`, or nothing.
std::string offered(const CommandPage& page, const PageEntry& entry, std::string_view files) {
  return takesFile(entry.form) ? std::string(files)
                               : fmt::format("{}", fmt::join(wordsOf(page, entry), " "));
}

// Escapes a text for single quotes in a shell.
std::string quotable(const std::string& text) { return replaceAll(text, "'", "'\\''"); }

// Escapes a text for single quotes in zsh, where _arguments and _describe also interpret brackets
// and colons.
std::string zshText(const std::string& about) {
  std::string out = replaceAll(about, "\\", "\\\\");
  for (const char* special : {"[", "]", ":"})
    out = replaceAll(out, special, std::string("\\") + special);
  return quotable(out);
}

std::string zshValues(const CommandPage& page, const PageEntry& entry) {
  return takesFile(entry.form) ? "_files" : fmt::format("({})", offered(page, entry, ""));
}

// Writes the function that completes one command and calls the functions of its subcommands.
std::string zshFunction(const CommandPage& page) {
  // The function's name must differ from the name of the file. Otherwise zsh would use it instead
  // of the file.
  const std::string name = "__" + replaceAll(page.name, " ", "-");
  std::string commands, arguments;
  for (const CommandPage& one : page.commands)
    commands +=
        fmt::format("    '{}:{}'\n", one.name.substr(page.name.size() + 1), zshText(one.summary));
  eachFlag(page, [&](const PageEntry& flag) {
    for (const std::string& spelled : flag.names)
      arguments += fmt::format(
          " \\\n    '*{}[{}]{}'", spelled, zshText(flag.about),
          flag.form.empty() ? ""
                            : fmt::format(":{}:{}", zshText(flag.form), zshValues(page, flag)));
  });
  eachArgument(page, [&](const PageEntry& argument) {
    arguments += fmt::format(" \\\n    '*:{}:{}'", zshText(argument.names.front()),
                             zshValues(page, argument));
  });
  if (page.commands.empty()) return fmt::format("{}() {{\n  _arguments{}\n}}\n", name, arguments);
  return fmt::format(
      "{0}() {{\n  local state line\n  typeset -A opt_args\n  local -a commands=(\n{1}  )\n"
      "  _arguments -C{2} \\\n    '1:command:->command' '*::argument:->rest'\n"
      "  case $state in\n    command) _describe command commands ;;\n"
      "    rest) (( $+functions[{0}-$words[1]] )) && {0}-$words[1] ;;\n  esac\n}}\n",
      name, commands, arguments);
}

// Returns the condition under which fish completes this command: the words of its name are typed,
// and no word of a subcommand.
std::string fishCondition(const CommandPage& page) {
  const auto space = page.name.find(' ');
  std::string where = "true";
  if (space != std::string::npos)
    where = "__fish_seen_subcommand_from " +
            replaceAll(page.name.substr(space + 1), " ", "; and __fish_seen_subcommand_from ");
  if (page.commands.empty()) return where;
  return fmt::format("{}; and not __fish_seen_subcommand_from {}", where,
                     fmt::join(commandNames(page), " "));
}

std::string fishFlag(const CommandPage& page, const PageEntry& flag) {
  std::string out;
  for (const std::string& name : flag.names)
    out += name.starts_with("--") ? "-l " + name.substr(2) + " " : "-s " + name.substr(1) + " ";
  if (takesFile(flag.form))
    out += "-r -F ";
  else if (!flag.form.empty())
    out += fmt::format("-x -a '{}' ", offered(page, flag, ""));
  return fmt::format("{}-d '{}'", out, quotable(flag.about));
}

std::string fishLines(const CommandPage& page) {
  std::string out;
  const auto line = [&](const std::string& what) {
    out += fmt::format("complete -c {} -n '{}' {}\n", page.name.substr(0, page.name.find(' ')),
                       fishCondition(page), what);
  };
  for (const CommandPage& command : page.commands)
    line(fmt::format("-f -a '{}' -d '{}'", command.name.substr(page.name.size() + 1),
                     quotable(command.summary)));
  eachFlag(page, [&](const PageEntry& flag) { line(fishFlag(page, flag)); });
  eachArgument(page, [&](const PageEntry& argument) {
    if (!takesFile(argument.form)) line(fmt::format("-f -a '{}'", offered(page, argument, "")));
  });
  return out;
}

constexpr auto kBashFunction = R"(
# Words are split at "=" too: --flag=value is three of them.
_viaduct() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${1##*/} i
  [[ $cur == = ]] && cur=
  [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD-2]}
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ -n ${_viaduct_words["$command ${COMP_WORDS[i]}"]+x} ]] && command+=" ${COMP_WORDS[i]}"
  done
  [[ $before == -[!-]?* ]] && before=-$before
  if [[ $before == --* && $command != viaduct ]]; then
    [[ -n ${_viaduct_values["$command $before"]+x} ]] || before=${before//_/-}
  fi
  local values=${_viaduct_values["$command $before"]-none}
  case $values in
    none) COMPREPLY=($(compgen -W "${_viaduct_words["$command"]}" -- "$cur")) ;;
    files) COMPREPLY=($(compgen -f -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$values" -- "$cur")) ;;
  esac
  if [[ $values == none && $cur != -* && ${_viaduct_values["$command"]-} == files ]]; then
    COMPREPLY+=($(compgen -f -- "$cur"))
  fi
}
)";

}  // namespace

std::string bashCompletion(const CommandPage& root, std::span<const CommandPage> others) {
  // `words` maps each command to its completions. `values` maps each flag of a command to its
  // values.
  std::string words, values;
  for (const CommandPage* page : allPages(root, others)) {
    std::vector<std::string> next = commandNames(*page);
    eachFlag(*page, [&](const PageEntry& flag) {
      next.insert(next.end(), flag.names.begin(), flag.names.end());
      for (const std::string& name : flag.names)
        if (!flag.form.empty())
          values +=
              fmt::format("  ['{} {}']='{}'\n", page->name, name, offered(*page, flag, "files"));
    });
    eachArgument(*page, [&](const PageEntry& argument) {
      if (takesFile(argument.form)) values += fmt::format("  ['{}']='files'\n", page->name);
      for (const std::string& word : wordsOf(*page, argument)) next.push_back(word);
    });
    words += fmt::format("  ['{}']='{}'\n", page->name, fmt::join(next, " "));
  }
  std::string names = root.name;
  for (const CommandPage& other : others) names += " " + other.name;
  return fmt::format(
      "# Completion of {} for bash. Generated: viaduct completion bash\n"
      "declare -gA _viaduct_words=(\n{}) _viaduct_values=(\n{}){}complete -o filenames -F _viaduct "
      "{}\n",
      names, words, values, kBashFunction, names);
}

std::string zshCompletion(const CommandPage& root, std::span<const CommandPage> others) {
  std::string names = root.name, functions;
  for (const CommandPage& other : others) names += " " + other.name;
  for (const CommandPage* page : allPages(root, others)) functions += zshFunction(*page);
  return fmt::format("#compdef {}\n# Generated: viaduct completion zsh\n{}__$service \"$@\"\n",
                     names, functions);
}

std::string fishCompletion(const CommandPage& root, std::span<const CommandPage> others) {
  std::string out = "# Generated: viaduct completion fish\n";
  for (const CommandPage* page : allPages(root, others)) out += fishLines(*page);
  return out;
}

}  // namespace viaduct::app
