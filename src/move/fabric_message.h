// The messages between the two ends of a link, which go over the session. Also the backend's
// address and the keys of pins, which the agents exchange before. Threads: pure functions and
// values.
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
                                           << 10;  // an endpoint needs some hundred bytes a device
inline constexpr std::size_t kMaxKey = 16 << 10;   // a packed key needs some dozen bytes a device
inline constexpr std::size_t kMaxWhy = 1024;       // bytes of ShutChannel::why

// The place to which a peer's probe of the path writes its eight bytes.
struct ProbeTarget {
  std::uint64_t address = 0;
  Bytes key = {};
  friend bool operator==(const ProbeTarget&, const ProbeTarget&) = default;
};

// A backend's address: the number and the kind of its rails. Two ends connect only if their kinds
// are equal.
struct Greeting {
  std::uint32_t rails = 0;
  std::string kind = {};  // "ucx", "tcp"
};
Bytes encodeGreeting(const Greeting& greeting);
Result<Greeting> decodeGreeting(std::span<const std::byte> bytes);

// The key that Backend::pin returns has only the pin's generation. A peer requests the library's
// keys with a KeyRequest.
Bytes encodePinKey(std::uint32_t generation);
Result<std::uint32_t> decodePinKey(std::span<const std::byte> bytes);

// Describes the sender's endpoint: the dialer opens a life of a channel, and the other end answers.
struct OpenChannel {
  bool answer = false;
  std::uint32_t channel = 0, life = 0;
  Bytes address = {};
  ProbeTarget probe = {};
};
// The sender has closed its endpoint of this life. If the reason is kOver, it has closed all
// endpoints of the link. Nothing more comes in or goes out at that end.
struct ShutChannel {
  std::uint32_t channel = 0, life = 0;
  ShutReason reason = ShutReason::kBroken;
  std::string why = {};
};
// Requests the keys of a pin before its first use. The answer has one key for each rail, or none if
// the request is refused.
struct KeyRequest {
  std::uint32_t slot = 0, generation = 0;
};
struct KeyAnswer {
  std::uint32_t slot = 0, generation = 0;
  std::vector<Bytes> keys = {};
};
// Asks whether the peer is alive. The answer repeats channel and life.
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
// Refuses bytes that are truncated, too long, or of another version or kind.
Result<FabricMessage> decode(std::span<const std::byte> bytes);

}  // namespace viaduct::move
