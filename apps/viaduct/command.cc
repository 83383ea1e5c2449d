#include "viaduct/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/nearest.h"
#include "viaduct/flag_sheet.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

// Returns the last word of a nested command's name.
std::string wordOf(const Command& nested) {
  return nested.page.name.substr(nested.page.name.rfind(' ') + 1);
}

int failUnknown(const CommandFacts& command, const std::string& word) {
  std::vector<std::string> names;
  for (const Command& one : command.nested) names.push_back(wordOf(one));
  const std::string near = base::nearest(word, names);
  return fail(
      fmt::format("there is no command \"{}\"; {}", word,
                  near.empty() ? fmt::format("what to do: name one of {}", fmt::join(names, ", "))
                               : fmt::format("did you mean {}?", near)),
      command.wrong);
}

bool isGiven(const FlagsRead& read, std::string_view flag) {
  return std::any_of(read.given.begin(), read.given.end(),
                     [&](const Given& one) { return one.name == flag; });
}

}  // namespace

CommandPage pageFor(const std::string& name, const std::string& about, const std::string& more,
                    std::vector<PageEntry> entries, const std::vector<Command>& nested) {
  CommandPage page{.name = name,
                   .usage = name + " [flags]",
                   .summary = about.substr(0, about.find('\n')),
                   .about = about,
                   .more = more};
  PageSection arguments{.title = "Arguments"}, flags{.title = "Flags"};
  for (PageEntry& entry : entries) {
    const bool argument = isArgument(entry.names[0]);
    if (argument) page.usage += " " + (entry.form.starts_with("--") ? entry.form : entry.names[0]);
    (argument ? arguments : flags).entries.push_back(std::move(entry));
  }
  flags.entries.push_back({.names = {"-h", "--help"}, .about = "print this help"});
  if (!arguments.entries.empty()) page.sections.push_back(std::move(arguments));
  page.sections.push_back(std::move(flags));
  for (const Command& one : nested) page.commands.push_back(one.page);
  if (!nested.empty()) page.usage += " [COMMAND]";
  return page;
}

std::optional<int> readCommand(const CommandFacts& command, const CommandWords& words,
                               const std::function<Status(const Given& given)>& apply) {
  calledAs(command.page.name);
  const bool names_one = !words.empty() && !words[0].starts_with('-') && !command.nested.empty();
  for (const Command& one : command.nested)
    if (names_one && words[0] == wordOf(one)) return one.run({words.begin() + 1, words.end()});
  if (names_one) return failUnknown(command, words[0]);
  std::vector<FlagName> known = command.flags;
  known.push_back({"help", true});
  FlagsRead read = readFlags(words, known, Repeats::kRefused, flagElsewhere);
  if (isGiven(read, "help")) {
    fmt::print("{}", pageHelp(command.page));
    return kExitOk;
  }
  for (const Given& one : read.given)
    if (auto applied = apply(one); !applied) read.problems.push_back(std::move(applied).error());
  for (const FlagName& flag : known)
    if (read.problems.empty() && flag.required && !isGiven(read, flag.name))
      read.problems.push_back(
          badFlag("command line", fmt::format("{} is required", spelled(flag.name, '-')),
                  command.example == nullptr ? "see --help" : command.example()));
  if (read.problems.empty()) return std::nullopt;
  failAll(read.problems);
  return command.wrong;
}

}  // namespace viaduct::app
