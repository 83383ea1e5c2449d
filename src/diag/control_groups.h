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

// Whether the files tell the process's groups at all.
bool knowsGroups(const Tree& tree);

// The least number in files of that name, from the process's group up; empty: no limit.
// `controller`: "memory"; `name`: of version 2, "memory.max"; `old_name`: of version 1.
std::optional<GroupLimit> groupLimit(const Tree& tree, const std::string& controller,
                                     const std::string& name, const std::string& old_name);

// The first of those files that is there and holds neither a number nor "max"; empty: none.
std::string damagedGroupFile(const Tree& tree, const std::string& controller,
                             const std::string& name, const std::string& old_name);

// The nearest file of that name that is there.
std::optional<GroupFile> groupFile(const Tree& tree, const std::string& controller,
                                   const std::string& name);

}  // namespace viaduct::diag
