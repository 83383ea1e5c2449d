// Subcommands and their flags. Threads: the main one.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "viaduct/command_names.h"
#include "viaduct/command_page.h"
#include "viaduct/commands.h"
#include "viaduct/flag_sheet.h"

namespace viaduct::app {

using CommandWords = std::vector<std::string>;

struct Command {
  std::string name = {};                   // "viaduct bench"
  std::function<CommandPage()> page = {};  // not needed to run the command
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
  // Returns what to type, if a required flag is missing. Null: the usage.
  std::string (*example)() = nullptr;
};

CommandPage pageOf(const std::string& name, const std::string& about, const std::string& more,
                   const FlagSheet& sheet, const std::vector<Command>& nested = {});
// Returns the exit code if the first word names a nested command, which then has run, or none.
std::optional<int> runNested(const std::vector<Command>& nested, const CommandWords& words,
                             int wrong);
// Adds a problem for each required flag that is missing.
void requireFlags(const FlagSheet& sheet, const std::string& remedy, SheetRead& read);
// Returns the exit code if the command itself does not run: the help was printed, or the words are
// wrong.
std::optional<int> endedBy(const SheetRead& read, const std::string& name,
                           const std::function<CommandPage()>& page, int wrong);

template <class Options>
Command commandOf(const CommandTable<Options>& table) {
  const auto sheet_of = [flags = table.flags](Options& options) {
    FlagSheet out;
    for (const Flag<Options>& flag : flags)
      out.add<Options>(isArgument(flag.name) ? "Arguments" : "Flags", {&flag, 1}, options);
    return out.addHelp("Flags");
  };
  const auto page = [sheet_of, table] {
    Options usual;
    return pageOf(asTyped(table.name), asTyped(table.about), asTyped(table.more), sheet_of(usual),
                  table.nested);
  };
  const auto run = [sheet_of, table, page](const CommandWords& words) {
    if (const auto code = runNested(table.nested, words, table.wrong)) return *code;
    Options options;
    const FlagSheet sheet = sheet_of(options);
    SheetRead read = sheet.read(words, Repeats::kRefused);
    requireFlags(sheet, table.example == nullptr ? "see --help" : table.example(), read);
    const auto code = endedBy(read, asTyped(table.name), page, table.wrong);
    return code ? *code : table.run(options);
  };
  return {asTyped(table.name), page, run};
}

}  // namespace viaduct::app
