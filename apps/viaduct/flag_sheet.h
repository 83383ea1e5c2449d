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

#include "viaduct/flags.h"
#include "viaduct/run_options.h"

namespace viaduct::app {

struct SheetFlag {
  FlagName name = {};
  std::string_view form = {}, fallback = {}, help = {};  // as in Flag
  std::function<Status(const Given& given)> apply = {};
};
struct FlagGroup {
  std::string_view title = {};  // empty: neither help nor manuals show the group
  std::vector<SheetFlag> flags = {};
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
  // The same for those flags of a table that `names` lists, in its order.
  template <class Options>
  FlagSheet& add(std::string_view title, std::span<const Flag<Options>> flags,
                 std::type_identity_t<Options>& into,
                 std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      for (const Flag<Options>& flag : flags)
        if (flag.name == name) put(title, flag, into);
    return *this;
  }
  void add(std::string_view title, SheetFlag flag);

  const std::vector<FlagGroup>& groups() const& { return groups_; }
  std::vector<FlagName> names() const;
  // Reads the words, with the file of --config-file, whose flags the command line overrides.
  // `options` hold the flags that could be read. Returns all problems.
  std::vector<Error> read(std::span<const std::string> words, Repeats repeats,
                          RunOptions& options) const;

 private:
  template <class Options>
  void put(std::string_view title, const Flag<Options>& flag, Options& into) {
    add(title,
        {.name = nameOf(flag),
         .form = flag.form,
         .fallback = flag.fallback,
         .help = flag.help,
         .apply = [&flag, &into](const Given& given) { return applyFlag(flag, given, into); }});
  }
  void applyAll(FlagsRead read, RunOptions& options, std::vector<Error>& problems) const;

  std::vector<FlagGroup> groups_;
};

// Makes the entry for help and manuals. A default such as "50ms; nixlbench: warmup_iter" depends on
// the program.
PageEntry entryOf(const SheetFlag& flag, bool as_nixlbench);
// Adds the flags to a page, one section for each group.
void addSections(const FlagSheet& sheet, CommandPage& page);

// Says which other command has a flag, or is named like it.
std::optional<Error> flagElsewhere(std::string_view flag);

}  // namespace viaduct::app
