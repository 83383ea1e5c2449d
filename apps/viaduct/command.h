// Subcommands whose flags are the rows of a table. Threads: the main one.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "viaduct/command_page.h"
#include "viaduct/commands.h"
#include "viaduct/flags.h"

namespace viaduct::app {

using CommandWords = std::vector<std::string>;

struct Command {
  CommandPage page = {};
  // Reads the words behind the command's name and runs it. Returns the exit code.
  std::function<int(const CommandWords& words)> run = {};
};

// The description of a command. `about` begins with a summary of one line. A first word that names
// a nested command runs that command instead.
template <class Options>
struct CommandTable {
  const char *name, *about;  // `name` is "viaduct p2p"
  const char* more = "";     // as in CommandPage
  std::span<const Flag<Options>> flags = {};
  int (*run)(const Options& options);
  int wrong = kExitUsage;  // the exit code of a wrong command line
  std::vector<Command> nested = {};
  // Returns what to type, if a required flag is missing. Null: the error refers to --help.
  std::string (*example)() = nullptr;
};

// The facts about a command that readCommand() needs.
struct CommandFacts {
  CommandPage page = {};
  std::vector<FlagName> flags = {};
  std::vector<Command> nested = {};
  int wrong = kExitUsage;
  std::string (*example)() = nullptr;
};
// Makes the page from the table's texts and the entries of its flags.
CommandPage pageFor(const std::string& name, const std::string& about, const std::string& more,
                    std::vector<PageEntry> entries, const std::vector<Command>& nested);
// Passes each given flag to `apply`. Returns the exit code if the command itself does not run: a
// nested one has run, the help was printed, or the words are wrong.
std::optional<int> readCommand(const CommandFacts& command, const CommandWords& words,
                               const std::function<Status(const Given& given)>& apply);

template <class Options>
Command commandOf(const CommandTable<Options>& table) {
  CommandFacts facts{.nested = table.nested, .wrong = table.wrong, .example = table.example};
  std::vector<PageEntry> entries;
  for (const Flag<Options>& flag : table.flags) {
    entries.push_back(entryOf(flag, '-', flag.fallback));
    facts.flags.push_back(nameOf(flag));
  }
  facts.page = pageFor(table.name, table.about, table.more, std::move(entries), table.nested);
  return {facts.page, [facts, flags = table.flags, run = table.run](const CommandWords& words) {
            Options options;
            const auto ended = readCommand(facts, words, [&](const Given& given) -> Status {
              for (const Flag<Options>& flag : flags)
                if (flag.name == given.name) return applyFlag(flag, given, options);
              return Ok{};
            });
            return ended ? *ended : run(options);
          }};
}

}  // namespace viaduct::app
