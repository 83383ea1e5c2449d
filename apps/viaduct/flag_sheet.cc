#include "viaduct/flag_sheet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "viaduct/command_line.h"
#include "viaduct/nixlbench.h"

namespace viaduct::app {
namespace {

bool hasFlag(const CommandPage& page, const std::string& spelling) {
  for (const PageSection& section : page.sections)
    for (const PageEntry& entry : section.entries)
      if (std::ranges::find(entry.names, spelling) != entry.names.end()) return true;
  return false;
}

void addOwners(const CommandPage& page, const std::string& spelling,
               std::vector<std::string>& into) {
  if (hasFlag(page, spelling)) into.push_back(fmt::format("`{}`", page.name));
  for (const CommandPage& nested : page.commands) addOwners(nested, spelling, into);
}

// Finds the command whose last word is the flag's name, or ends that name after an underscore.
const CommandPage* commandNamed(const CommandPage& page, std::string_view flag) {
  const std::string word = page.name.substr(page.name.rfind(' ') + 1);
  if (flag == word || flag.ends_with("_" + word)) return &page;
  for (const CommandPage& nested : page.commands)
    if (const CommandPage* const found = commandNamed(nested, flag)) return found;
  return nullptr;
}

}  // namespace

bool SheetRead::has(std::string_view flag) const {
  return std::ranges::find(given, flag, &Given::name) != given.end();
}

FlagSheet& FlagSheet::add(std::string_view title, SheetFlag flag) {
  auto group = std::ranges::find(groups_, title, &FlagGroup::title);
  if (group == groups_.end()) group = groups_.insert(group, {.title = title});
  group->flags.push_back(std::move(flag));
  return *this;
}

FlagSheet& FlagSheet::addHelp(std::string_view title) {
  return add(title, {.name = {.name = "help", .yes_or_no = true},
                     .help = "print this help",
                     .apply = [](std::string_view) { return Status(Ok{}); }});
}

std::vector<FlagName> FlagSheet::names() const {
  std::vector<FlagName> out;
  for (const FlagGroup& group : groups_)
    for (const SheetFlag& flag : group.flags) out.push_back(flag.name);
  return out;
}

void FlagSheet::apply(FlagsRead read, SheetRead& into) const {
  std::ranges::move(read.problems, std::back_inserter(into.problems));
  const auto apply_one = [&](const SheetFlag& flag, Given& one) {
    if (auto applied = flag.apply(one.text); !applied) {
      into.problems.push_back(std::move(applied).error());
      into.problems.back().operation = one.from;
      into.unread.push_back(one.name);
    } else if (flag.name.works) {
      into.given.push_back(std::move(one));
    }
  };
  for (Given& one : read.given)
    for (const FlagGroup& group : groups_)
      if (const auto flag = std::ranges::find(group.flags, one.name,
                                              [](const SheetFlag& f) { return f.name.name; });
          flag != group.flags.end()) {
        apply_one(*flag, one);
        break;
      }
}

SheetRead FlagSheet::read(std::span<const std::string> words, Repeats repeats) const {
  const std::vector<FlagName> known = names();
  FlagsRead typed = readFlags(words, known, repeats, flagElsewhere);
  std::string file;
  for (const Given& one : typed.given)
    if (one.name == "config_file") file = one.text;
  SheetRead out;
  if (!file.empty()) apply(readFlagFile(file, known, flagElsewhere), out);
  apply(std::move(typed), out);
  out.help = out.has("help");
  return out;
}

PageEntry entryOf(const SheetFlag& flag, bool as_nixlbench) {
  constexpr std::string_view kTheirs = "; nixlbench: ";
  std::string_view usual = flag.form.empty() ? "" : flag.fallback;
  if (const auto theirs = usual.find(kTheirs); theirs != usual.npos)
    usual = as_nixlbench ? usual.substr(theirs + kTheirs.size()) : usual.substr(0, theirs);
  return {.names = spellings(flag.name.name, as_nixlbench ? '_' : '-'),
          .form = std::string(flag.form),
          .about = withDefault(flag.help, usual)};
}

std::optional<Error> flagElsewhere(std::string_view flag) {
  const CommandPage root = viaductCommand().page();
  std::vector<std::string> owners;
  addOwners(root, spelled(flag, '-'), owners);
  constexpr std::size_t kMost = 3;
  if (owners.size() > kMost) owners.resize(kMost);
  if (!owners.empty())
    return badFlag("", fmt::format("it is a flag of {}", fmt::join(owners, ", ")));
  if (const auto theirs = nixlbenchFlag(flag)) return theirs;
  const CommandPage* const named = commandNamed(root, flag);
  if (named == nullptr || named == &root) return std::nullopt;
  return badFlag("", fmt::format("`{}` is a command of its own", named->name),
                 fmt::format("see {} --help", named->name));
}

}  // namespace viaduct::app
