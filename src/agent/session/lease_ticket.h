// The bytes that name a lease, and that its owner gives the borrower. Threads: pure functions.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace viaduct::agent {

// A limit, because each separate block takes memory and time at both ends.
inline constexpr std::uint64_t kMaxLeaseBlocks = std::uint64_t{1} << 22U;

struct LeaseTicket {
  // The names and the ids (Hello::agent) of both ends.
  std::string owner = {}, borrower = {};
  std::array<std::uint8_t, 16> owner_id = {}, borrower_id = {};
  std::uint64_t epoch = 0;   // of the session
  std::uint64_t number = 0;  // of the lease, in this session
  MemoryAccess access = MemoryAccess::kReadOnly;
  Blocks blocks = {};

  base::Bytes encode() const;
  static Result<LeaseTicket> decode(std::span<const std::byte> blob);
};

struct TakenBlocks {
  Blocks blocks = {};
  std::vector<Extent> ranges = {};  // core::rangesOf() the blocks
};
// The blocks that a selection takes, as a list of their own. Blocks that follow each other at equal
// distances become one run. Refuses indices out of range or named twice.
Result<TakenBlocks> takenBlocks(const Selection& selection);

}  // namespace viaduct::agent
