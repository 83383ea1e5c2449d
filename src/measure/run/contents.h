// What stands in the memory that a row moves: fills sources, and checks what arrived. Threads: one
// at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/load/pattern.h"
#include "measure/run/spec.h"

namespace viaduct::measure {

// One end of a stream, and the memory of its device.
struct StreamEnd {
  std::uint32_t stream = 0;  // its number
  Role role = Role::kInitiator;
  std::span<std::byte> memory = {};
};

class Contents {
 public:
  Contents(const Spec& spec, const Workload& row, const std::vector<Stream>& streams,
           const DeviceBytes& bytes);

  // The end that a stream's bytes come from.
  Role source(std::uint32_t stream) const;
  const Sets& sets(std::uint32_t stream) const { return sets_[stream]; }

  void fill(const StreamEnd& end, std::uint64_t epoch) const;
  // Of the sets that `iterations` transfers have used: what is wrong, with the block's place.
  std::optional<std::string> verify(const StreamEnd& end, std::uint64_t epoch,
                                    std::uint64_t iterations) const;

 private:
  Pattern pattern(std::uint64_t epoch) const;
  std::span<std::byte> block(const StreamEnd& end, std::uint64_t set, std::uint32_t k) const;
  std::uint64_t number(std::uint32_t stream, std::uint64_t set, std::uint32_t k) const;
  std::optional<Mismatch> check(const StreamEnd& end, const Pattern& now, std::uint64_t set,
                                std::uint32_t k) const;

  const Spec& spec_;
  const Workload& row_;
  const std::vector<Stream>& streams_;
  std::vector<Sets> sets_;
  std::vector<std::uint64_t> first_;  // each stream's first block's number
  std::uint64_t blocks_ = 0;
  std::vector<std::uint32_t> initiator_order_, target_order_;
};

}  // namespace viaduct::measure
