#include "backends/local/live_table.h"

#include <utility>

namespace viaduct::local {

using base::SharedMemory;

constexpr std::uint64_t kTableBytes = kSlots * sizeof(std::uint64_t);

Result<LiveTable> LiveTable::make() {
  VIADUCT_TRY(SharedMemory memory, SharedMemory::allocate(kTableBytes, {.peers_only_read = true}));
  return LiveTable(std::move(memory));
}

Result<LiveTable> LiveTable::map(const base::Fd& file) {
  VIADUCT_TRY(SharedMemory memory,
              SharedMemory::map(file, kTableBytes, SharedMemory::Access::kRead));
  return LiveTable(std::move(memory));
}

}  // namespace viaduct::local
