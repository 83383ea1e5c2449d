#include "viaduct/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/lists.h"
#include "base/nearest.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

// Returns the last word of a nested command's name.
std::string wordOf(const Command& nested) { return nested.name.substr(nested.name.rfind(' ') + 1); }

int failUnknown(const std::vector<Command>& nested, const std::string& word, int wrong) {
  const auto names = base::mapped(nested, wordOf);
  const std::string near = base::nearest(word, names);
  return fail(
      fmt::format("there is no command \"{}\"; {}", word,
                  near.empty() ? fmt::format("what to do: name one of {}", fmt::join(names, ", "))
                               : fmt::format("did you mean {}?", near)),
      wrong);
}

}  // namespace

CommandPage pageOf(const std::string& name, const std::string& about, const std::string& more,
                   const FlagSheet& sheet, const std::vector<Command>& nested) {
  CommandPage page{.name = name,
                   .usage = name + " [flags]",
                   .summary = about.substr(0, about.find('\n')),
                   .about = about,
                   .more = more};
  for (const FlagGroup& group : sheet.groups()) {
    PageSection& section =
        page.sections.emplace_back(PageSection{.title = std::string(group.title)});
    for (const SheetFlag& flag : group.flags) {
      PageEntry& entry = section.entries.emplace_back(entryOf(flag, name == "nixlbench"));
      entry.about = asTyped(std::move(entry.about));
      if (!isArgument(flag.name.name)) continue;
      const std::string_view word = flag.name.behind ? flag.form : flag.name.name;
      page.usage += flag.name.required || flag.name.behind ? fmt::format(" {}", word)
                                                           : fmt::format(" [{}]", word);
    }
  }
  for (const Command& one : nested) page.commands.push_back(one.page());
  if (!nested.empty()) page.usage += " [COMMAND]";
  return page;
}

std::optional<int> runNested(const std::vector<Command>& nested, const CommandWords& words,
                             int wrong) {
  if (nested.empty() || words.empty() || words[0].starts_with('-')) return std::nullopt;
  for (const Command& one : nested)
    if (words[0] == wordOf(one)) return one.run({words.begin() + 1, words.end()});
  return failUnknown(nested, words[0], wrong);
}

void requireFlags(const FlagSheet& sheet, const std::string& remedy, SheetRead& read) {
  for (const FlagName& flag : sheet.names())
    if (read.problems.empty() && flag.required && !read.has(flag.name))
      read.problems.push_back(
          badFlag("command line", fmt::format("{} is required", spelled(flag.name, '-')), remedy));
}

std::optional<int> endedBy(const SheetRead& read, const std::string& name,
                           const std::function<CommandPage()>& page, int wrong) {
  calledAs(name);
  if (read.help) {
    fmt::print("{}", pageHelp(page()));
    return kExitOk;
  }
  if (read.problems.empty()) return std::nullopt;
  failAll(read.problems);
  return wrong;
}

}  // namespace viaduct::app
