#include "viaduct/flag_sheet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <iterator>

#include "base/text.h"
#include "viaduct/command_line.h"
#include "viaduct/nixlbench.h"

namespace viaduct::app {
namespace {

constexpr std::array<std::string_view, 5> kSecrets{"etcd_password", "secret", "obj_access_key",
                                                   "obj_secret_key", "obj_session_token"};

bool contains(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != std::ranges::end(words);
}

std::string usageOf(std::string out, std::span<const FlagName> known) {
  for (const FlagName& flag : known)
    if (isArgument(flag.name)) out += fmt::format(" {}", flag.name);
  return out;
}

bool hasFlag(const CommandPage& page, const std::string& spelling) {
  for (const PageSection& section : page.sections)
    for (const PageEntry& entry : section.entries)
      if (contains(entry.names, spelling)) return true;
  return false;
}

void addOwners(const CommandPage& page, const std::string& spelling,
               std::vector<std::string>& into) {
  if (hasFlag(page, spelling)) into.push_back(fmt::format("`{}`", page.name));
  for (const CommandPage& nested : page.commands) addOwners(nested, spelling, into);
}

// Finds the command whose last word is the flag's name, or the end of it.
const CommandPage* commandNamed(const CommandPage& page, std::string_view flag) {
  const std::string word = page.name.substr(page.name.rfind(' ') + 1);
  if (flag == word || flag.ends_with("_" + word)) return &page;
  for (const CommandPage& nested : page.commands)
    if (const CommandPage* const found = commandNamed(nested, flag)) return found;
  return nullptr;
}

}  // namespace

void FlagSheet::add(std::string_view title, SheetFlag flag) {
  auto group = std::ranges::find(groups_, title, &FlagGroup::title);
  if (group == groups_.end()) group = groups_.insert(group, {.title = title});
  group->flags.push_back(std::move(flag));
}

std::vector<FlagName> FlagSheet::names() const {
  std::vector<FlagName> out;
  for (const FlagGroup& group : groups_)
    for (const SheetFlag& flag : group.flags) out.push_back(flag.name);
  return out;
}

void FlagSheet::applyAll(FlagsRead read, RunOptions& options, std::vector<Error>& problems) const {
  std::ranges::move(read.problems, std::back_inserter(problems));
  const auto apply = [&](const SheetFlag& flag, const Given& one) {
    if (auto applied = flag.apply(one); !applied) {
      problems.push_back(std::move(applied).error());
      options.unread.push_back(one.name);
    } else if (flag.name.works) {
      options.given[one.name] = contains(kSecrets, one.name) ? "(not shown)" : one.text;
      std::erase(options.denied, one.name);
      if (flag.name.yes_or_no && !parseYesNo(one.text).value()) options.denied.push_back(one.name);
    }
  };
  for (const Given& one : read.given)
    for (const FlagGroup& group : groups_)
      for (const SheetFlag& flag : group.flags)
        if (flag.name.name == one.name) apply(flag, one);
}

std::vector<Error> FlagSheet::read(std::span<const std::string> words, Repeats repeats,
                                   RunOptions& options) const {
  const std::vector<FlagName> known = names();
  FlagsRead typed = readFlags(words, known, repeats, flagElsewhere);
  std::vector<Error> problems;
  std::string& file = options.out.config_file;
  for (const Given& one : typed.given)
    if (one.name == "config_file") file = one.text;
  if (!file.empty()) applyAll(readFlagFile(file, known, flagElsewhere), options, problems);
  applyAll(std::move(typed), options, problems);
  for (const FlagName& flag : known)
    if (problems.empty() && !options.out.help && flag.required && !options.has(flag.name))
      problems.push_back(badFlag("command line", fmt::format("{} is required", flag.name),
                                 fmt::format("type {}", usageOf(options.command, known))));
  return problems;
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

void addSections(const FlagSheet& sheet, CommandPage& page) {
  for (const FlagGroup& group : sheet.groups()) {
    if (group.title.empty()) continue;
    PageSection& section = page.sections.emplace_back(std::string(group.title));
    for (const SheetFlag& flag : group.flags)
      section.entries.push_back(entryOf(flag, page.name == "nixlbench"));
  }
}

std::optional<Error> flagElsewhere(std::string_view flag) {
  const CommandPage root = viaductCommand().page;
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
