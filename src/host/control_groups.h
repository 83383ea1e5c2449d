// The limits of the process's control group and of all groups above it, in versions 1 and 2.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/tree.h"

namespace viaduct::host {

// The folder of a control group: the process's own, or one above it.
struct GroupFolder {
  std::string path = {};  // "/sys/fs/cgroup/kubepods/pod1"
  int version = 2;
};
// The folders from the process's group up, those of version 1 first. `controller`: "memory".
std::vector<GroupFolder> groupFolders(const Tree& tree, const std::string& controller);

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

// The least number in files of that name, from the process's group up; empty: no limit. `name`: the
// file in version 2, "memory.max"; `old_name`: in version 1.
std::optional<GroupLimit> groupLimit(const Tree& tree, const std::string& controller,
                                     const std::string& name, const std::string& old_name);

// The first file that groupLimit() would read and that has neither a number nor "max"; empty: none.
std::string damagedGroupFile(const Tree& tree, const std::string& controller,
                             const std::string& name, const std::string& old_name);

// The first existing file of that name, from the process's group up.
std::optional<GroupFile> groupFile(const Tree& tree, const std::string& controller,
                                   const std::string& name);

}  // namespace viaduct::host
