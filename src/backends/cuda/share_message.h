// The messages between the links of two processes, which lend each other memory of GPUs. Threads:
// plain values.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/fields.h"
#include "cuda/memory.h"

namespace viaduct::cuda {

inline constexpr std::size_t kMostSharedRanges = 65536;  // of a pin
inline constexpr std::size_t kRangesOfOffer = 15;        // a message carries 16 descriptors

// The key of a pin for peers, as Backend::pin returns it.
struct MemoryKey {
  std::uint64_t pin = 0;  // PinnedMemory::number
  MemoryClass memory_class = MemoryClass::kHost;
  std::array<std::uint8_t, 16> gpu = {};  // its UUID
  friend bool operator==(const MemoryKey&, const MemoryKey&) = default;
};

// The sender wants to map a pin of the receiver.
struct MemoryWanted {
  std::uint64_t pin = 0;
  friend bool operator==(const MemoryWanted&, const MemoryWanted&) = default;
};
// A part of a pin's memory, with the sender's addresses. The handle is that of cuIpcGetMemHandle;
// virtual memory has a descriptor in its place.
struct SharedRange {
  std::uint64_t base = 0, bytes = 0, buffer_id = 0;
  base::Bytes handle = {};
  friend bool operator==(const SharedRange&, const SharedRange&) = default;
};
// Ranges of a pin, in order of address. Several messages follow each other if there are many. The
// first descriptor of a session's first offer is the write end of a pipe. The receiver keeps it
// open while it maps memory of the sender.
struct MemoryOffer {
  std::uint64_t pin = 0;
  bool lifeline = false;
  std::uint32_t all = 0;  // ranges of the pin
  std::vector<SharedRange> ranges = {};
  friend bool operator==(const MemoryOffer&, const MemoryOffer&) = default;
};
struct MemoryRefused {
  std::uint64_t pin = 0;
  std::string why = {};
  friend bool operator==(const MemoryRefused&, const MemoryRefused&) = default;
};
// The sender releases the pin, and waits for the answer MemoryReturned.
struct MemoryRecalled {
  std::uint64_t pin = 0;
  friend bool operator==(const MemoryRecalled&, const MemoryRecalled&) = default;
};
// The sender has ended its copies, and has no mapping of the pin any more.
struct MemoryReturned {
  std::uint64_t pin = 0;
  friend bool operator==(const MemoryReturned&, const MemoryReturned&) = default;
};

auto fields(base::Is<MemoryKey> auto& m) {
  return base::list(m.pin, base::atMost(MemoryClass::kPrivate, m.memory_class), m.gpu);
}
auto fields(base::Is<MemoryWanted> auto& m) { return base::list(m.pin); }
auto fields(base::Is<SharedRange> auto& m) {
  return base::list(m.base, m.bytes, m.buffer_id, base::atMost(sizeof(CUipcMemHandle), m.handle),
                    base::noOverflow(m.base, m.bytes));
}
auto fields(base::Is<MemoryOffer> auto& m) {
  return base::list(m.pin, m.lifeline, m.all, base::atMost(kRangesOfOffer, m.ranges));
}
auto fields(base::Is<MemoryRefused> auto& m) {
  return base::list(m.pin, base::atMost(1024, m.why));
}
auto fields(base::Is<MemoryRecalled> auto& m) { return base::list(m.pin); }
auto fields(base::Is<MemoryReturned> auto& m) { return base::list(m.pin); }

base::Bytes encodeKey(const MemoryKey& key);
Result<MemoryKey> decodeKey(std::span<const std::byte> bytes);

using ShareMessage =
    std::variant<MemoryWanted, MemoryOffer, MemoryRefused, MemoryRecalled, MemoryReturned>;
base::Bytes encode(const ShareMessage& message);
Result<ShareMessage> decodeShare(std::span<const std::byte> bytes);

}  // namespace viaduct::cuda
