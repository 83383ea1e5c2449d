// What two ends of a link tell each other over the session, and what their backends tell ahead of
// it, as bytes. Threads: pure functions and values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "move/channel_life.h"

namespace viaduct::move {

using base::Bytes;

inline constexpr std::size_t kMaxRails = 64;
inline constexpr std::size_t kMaxAddress = 64
                                           << 10;  // of an endpoint: a few hundred bytes a device
inline constexpr std::size_t kMaxKey = 16 << 10;   // packed; a few dozen bytes a device
inline constexpr std::size_t kMaxWhy = 1024;       // of a ShutChannel

// Where a peer's probe of the path may write its eight bytes.
struct ProbeTarget {
  std::uint64_t address = 0;
  Bytes key = {};
  friend bool operator==(const ProbeTarget&, const ProbeTarget&) = default;
};

// A backend's address: how many rails it has, and of what kind. Only the same kinds fit together.
struct Greeting {
  std::uint32_t rails = 0;
  std::string kind = {};  // "ucx", "tcp"
};
Bytes encodeGreeting(const Greeting& greeting);
Result<Greeting> decodeGreeting(std::span<const std::byte> bytes);

// What Backend::pin gives: which of the slot's pins it is. The key itself is asked for.
Bytes encodePinKey(std::uint32_t generation);
Result<std::uint32_t> decodePinKey(std::span<const std::byte> bytes);

// An endpoint of the sender's waits for the other end's: opens (from the dialer), or answers one.
struct OpenChannel {
  bool answer = false;
  std::uint32_t channel = 0, life = 0;
  Bytes address = {};
  ProbeTarget probe = {};
};
// The sender's endpoint of this life is gone: nothing more comes in or goes out at that end.
struct ShutChannel {
  std::uint32_t channel = 0, life = 0;
  ShutReason reason = ShutReason::kBroken;
  std::string why = {};
};
// The key of a pin, asked for before its first use, and the answer: one per rail; none: refused.
struct KeyRequest {
  std::uint32_t slot = 0, generation = 0;
};
struct KeyAnswer {
  std::uint32_t slot = 0, generation = 0;
  std::vector<Bytes> keys = {};
};
// Do you live? The answer has the same number.
struct PingChannel {
  bool answer = false;
  std::uint32_t channel = 0, life = 0;
};
// Tells the peer whether the sender is polling. A peer without wake-ups polls while the sender
// does.
struct PollingNotice {
  bool awake = false;
  std::uint32_t channel = 0, life = 0;
};
using FabricMessage =
    std::variant<OpenChannel, ShutChannel, KeyRequest, KeyAnswer, PingChannel, PollingNotice>;

Bytes encode(const FabricMessage& message);
// Refuses what is truncated, too long, or of another version or kind.
Result<FabricMessage> decode(std::span<const std::byte> bytes);

}  // namespace viaduct::move
