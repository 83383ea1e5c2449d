// Handles that lead another process to memory of this one. Threads: any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "device/fake/memory_map.h"

namespace viaduct::fakegpu {

// The content of a legacy or fabric handle.
struct Exported {
  static constexpr std::uint64_t kMark = 0x656b6166'61647563;

  std::uint64_t mark = 0;
  ::pid_t process = 0;
  int file = -1;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  int device = 0;
};
static_assert(sizeof(Exported) <= sizeof(CUipcMemHandle));

Exported exportOf(const Memory& memory, std::size_t bytes);
// Null: the owner is gone, or has freed the memory.
std::shared_ptr<Memory> openExported(const Exported& from);

}  // namespace viaduct::fakegpu
