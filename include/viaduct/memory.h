// Pieces of memory, as values. Threads: plain values.
#pragma once

#include <viaduct/cxx20.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace viaduct {

enum class MemoryKind : std::uint8_t { kHost, kDevice, kFile, kBlock, kObject };
const char* memoryKindName(MemoryKind kind);

// The access that transfers have to the memory.
enum class MemoryAccess : std::uint8_t { kReadWrite, kReadOnly };

// Describes a piece of memory; it does not own it.
struct Segment {
  MemoryKind kind = MemoryKind::kHost;
  std::uint32_t device = 0;   // which GPU, for kDevice
  std::uint64_t address = 0;  // an address, or the offset in `fd` for kFile and kBlock
  std::uint64_t bytes = 0;
  int fd = -1;                  // the file; for kHost the memfd behind the memory, if it has one
  std::uint64_t fd_offset = 0;  // for kHost with fd: offset of `address` in the memfd
  // For kHost with fd: lets peers on this host map the memfd. They can write to all of it, and keep
  // it after the Pin is gone. Set it only if the file holds nothing else.
  bool share_file = false;
  // kReadOnly: no transfer writes here. Agent::pin chooses it itself for host memory that this
  // process may not write.
  MemoryAccess access = MemoryAccess::kReadWrite;

  static Segment host(const void* start, std::uint64_t bytes) {
    return {.address = reinterpret_cast<std::uintptr_t>(start), .bytes = bytes};
  }
};

// A pin of a peer, which a transfer may name.
struct PinInfo {
  std::string label = {};  // the label that its owner gave; may be empty
  MemoryKind kind = MemoryKind::kHost;
  std::uint32_t device = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;                          // its number in the owner's table
  MemoryAccess access = MemoryAccess::kReadWrite;  // announced by the session; a Card omits it
  friend bool operator==(const PinInfo&, const PinInfo&) = default;
};

}  // namespace viaduct
