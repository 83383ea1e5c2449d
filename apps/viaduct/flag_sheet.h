// All flags of one command in groups, bound to the options that they fill. Commands share groups
// and single flags. Threads: plain values.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "viaduct/command_page.h"
#include "viaduct/flags.h"

namespace viaduct::app {

struct SheetFlag {
  FlagName name = {};
  std::string_view form = {}, fallback = {}, help = {};  // as in Flag
  std::function<Status(std::string_view text)> apply = {};
};
struct FlagGroup {
  std::string_view title = {};
  std::vector<SheetFlag> flags = {};
};

// The command line after parsing. The options hold the flags that could be read.
struct SheetRead {
  std::vector<Given> given = {};
  std::vector<std::string> unread = {};  // flags with a wrong value
  std::vector<Error> problems = {};
  bool help = false;

  bool has(std::string_view flag) const;
};

class FlagSheet {
 public:
  // Adds flags to the group with this title. They fill `into`, which has to outlive the sheet.
  template <class Options>
  FlagSheet& add(std::string_view title, std::span<const Flag<Options>> flags,
                 std::type_identity_t<Options>& into) {
    for (const Flag<Options>& flag : flags) put(title, flag, into);
    return *this;
  }
  // Adds only the flags of a table that `names` lists, in the order of `names`.
  template <class Options>
  FlagSheet& add(std::string_view title, std::span<const Flag<Options>> flags,
                 std::type_identity_t<Options>& into,
                 std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      for (const Flag<Options>& flag : flags)
        if (flag.name == name) put(title, flag, into);
    return *this;
  }
  FlagSheet& add(std::string_view title, SheetFlag flag);
  FlagSheet& addHelp(std::string_view title);

  const std::vector<FlagGroup>& groups() const& { return groups_; }
  std::vector<FlagName> names() const;
  // Reads the words, with the file of --config-file, whose flags the command line overrides.
  SheetRead read(std::span<const std::string> words, Repeats repeats) const;

 private:
  template <class Options>
  void put(std::string_view title, const Flag<Options>& flag, Options& into) {
    add(title, {.name = nameOf(flag),
                .form = flag.form,
                .fallback = flag.fallback,
                .help = flag.help,
                .apply = [&flag, &into](std::string_view text) { return flag.apply(text, into); }});
  }
  void apply(FlagsRead read, SheetRead& into) const;

  std::vector<FlagGroup> groups_;
};

// Makes the entry for help and manuals. A default such as "50ms; nixlbench: warmup_iter" depends on
// the program.
PageEntry entryOf(const SheetFlag& flag, bool as_nixlbench);

// Says which other command has a flag, or is named like it.
std::optional<Error> flagElsewhere(std::string_view flag);

}  // namespace viaduct::app
