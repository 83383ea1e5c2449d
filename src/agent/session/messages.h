// The payloads of a session's frames. Threads: plain values.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/session/hello.h"
#include "base/bytes.h"
#include "base/net/crypto.h"

namespace viaduct::agent {

inline constexpr std::size_t kMaxLabelBytes = 1024;
inline constexpr std::size_t kMaxByeBytes = 1024;
inline constexpr std::size_t kMaxReasonBytes = 4096;  // each text of a refusal

// The limits of an agent's announced pins, because its peers keep them and need not trust it with
// their memory. The bytes are those of PinMessage::cost, which is more than the frame. All pins are
// sent when a session begins, and have to fit into its queue.
inline constexpr std::size_t kMaxPins = std::size_t{1} << 16U;
inline constexpr std::size_t kMaxPinsBytes = std::size_t{32} << 20U;
// The limit for all the peers of an agent together.
inline constexpr std::size_t kMaxPinsBytesOfAll = std::size_t{1} << 30U;

// encode() appends, so that a buffer can be used again. decode() refuses payloads that are short,
// long, out of range or beyond the limits above.

// Announces a pin, with the key of each backend.
struct PinMessage {
  PinInfo info = {};
  std::vector<std::pair<std::string, base::Bytes>> keys = {};  // backend, Backend::pin's key
  void encode(base::Bytes& out) const;
  static Result<PinMessage> decode(std::span<const std::byte> payload);
  // About the memory that a peer needs for this pin in all its tables.
  std::size_t cost() const;
  friend bool operator==(const PinMessage&, const PinMessage&) = default;
};

// The pin of this slot, which is announced next, is read-only. Peers of minor version 2 and older
// skip this frame, and learn it when a write is refused.
struct ReadOnlyMessage {
  std::uint32_t slot = 0;
  void encode(base::Bytes& out) const;
  static Result<ReadOnlyMessage> decode(std::span<const std::byte> payload);
};

// A pin is gone.
struct UnpinMessage {
  std::uint32_t slot = 0;
  void encode(base::Bytes& out) const;
  static Result<UnpinMessage> decode(std::span<const std::byte> payload);
};

// From a backend's link to the link of the same backend at the other end. A view: copies nothing.
struct BackendMessage {
  std::string_view backend = {};
  std::span<const std::byte> bytes = {};
  // Makes the part of the payload before `bytes`, for Connection::sendParts.
  static void encodeHead(std::string_view backend, base::Bytes& out);
  static Result<BackendMessage> decode(std::span<const std::byte> payload);
};

// The agent ends the session on purpose.
struct ByeMessage {
  std::string why = {};
  void encode(base::Bytes& out) const;  // no more than kMaxByeBytes of `why`
  static Result<ByeMessage> decode(std::span<const std::byte> payload);
};

// Both ends send it when a session moves to the connection that carries this message. It has the
// session's life and the number of received frames, and proves that the sender is an end of that
// session.
struct ResumeMessage {
  std::uint64_t epoch = 0, heard = 0;
  base::Key proof = {};
  void encode(base::Bytes& out) const;
  static Result<ResumeMessage> decode(std::span<const std::byte> payload);
  friend bool operator==(const ResumeMessage&, const ResumeMessage&) = default;
};

// The listener refuses the dialer, with the error of judge().
struct RefuseMessage {
  Error why = {};
  void encode(base::Bytes& out) const;  // no more than kMaxReasonBytes of each text
  static Result<RefuseMessage> decode(std::span<const std::byte> payload);
};

}  // namespace viaduct::agent
