// The limits of the process's control group and of all groups above it, in versions 1 and 2.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "diag/tree.h"

namespace viaduct::diag {

// A file of a control group and its text.
struct GroupFile {
  std::string path = {}, text = {};
};

struct GroupLimit {
  std::string path = {};
  std::uint64_t value = 0;
};

// Whether the files show the process's control groups at all.
bool knowsGroups(const Tree& tree);

// The least number in files of that name, from the process's group up; empty: no limit.
// `controller`: "memory". `name`: the file in version 2, "memory.max"; `old_name`: in version 1.
std::optional<GroupLimit> groupLimit(const Tree& tree, const std::string& controller,
                                     const std::string& name, const std::string& old_name);

// The first file that groupLimit() would read and that has neither a number nor "max"; empty: none.
std::string damagedGroupFile(const Tree& tree, const std::string& controller,
                             const std::string& name, const std::string& old_name);

// The first existing file of that name, from the process's group up.
std::optional<GroupFile> groupFile(const Tree& tree, const std::string& controller,
                                   const std::string& name);

}  // namespace viaduct::diag
