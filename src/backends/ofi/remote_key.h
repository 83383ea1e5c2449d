// The key to registered memory, as it is sent to peers. Threads: pure functions and values.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace viaduct::ofi {

struct RemoteMemory {
  std::uint64_t key = 0;
  std::uint64_t base = 0;  // start of the memory if requests use offsets; 0 if they use addresses
  friend bool operator==(const RemoteMemory&, const RemoteMemory&) = default;
};

inline constexpr std::uint32_t kKeyMark = 0x316b4f56;  // "VOk1"

inline base::Bytes packed(const RemoteMemory& memory) {
  return base::Writer().put(kKeyMark).put(memory.key).put(memory.base).take();
}
// Nothing if the bytes are not a complete key of ours.
inline std::optional<RemoteMemory> unpacked(const base::Bytes& bytes) {
  base::Reader in(bytes);
  const bool ours = in.get<std::uint32_t>() == kKeyMark;
  RemoteMemory out;
  out.key = in.get<std::uint64_t>();
  out.base = in.get<std::uint64_t>();
  if (!ours || !in.finished()) return std::nullopt;
  return out;
}

}  // namespace viaduct::ofi
