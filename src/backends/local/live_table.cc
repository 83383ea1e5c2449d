#include "backends/local/live_table.h"

#include <fcntl.h>

#include <utility>

namespace viaduct::local {

using base::SharedMemory;

constexpr int kSealFutureWrite = 0x10;  // F_SEAL_FUTURE_WRITE, which old C libraries lack
constexpr std::uint64_t kTableBytes = kSlots * sizeof(std::uint64_t);

Result<LiveTable> LiveTable::make() {
  VIADUCT_TRY(SharedMemory memory, SharedMemory::allocate(kTableBytes, {.sealed_now = false}));
  VIADUCT_CHECK(memory.seal(kSealFutureWrite));
  return LiveTable(std::move(memory));
}

Result<LiveTable> LiveTable::map(const base::Fd& file) {
  VIADUCT_TRY(SharedMemory memory,
              SharedMemory::map(file, kTableBytes, SharedMemory::Access::kRead));
  return LiveTable(std::move(memory));
}

}  // namespace viaduct::local
