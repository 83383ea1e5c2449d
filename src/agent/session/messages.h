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

// What one agent may announce: its peers keep it, and it is not trusted with their memory. By
// PinMessage::cost, which is more than the frame: all are sent when a session begins, and have to
// find room in it.
inline constexpr std::size_t kMaxPins = std::size_t{1} << 16U;
inline constexpr std::size_t kMaxPinsBytes = std::size_t{32} << 20U;
// And all the peers of an agent together.
inline constexpr std::size_t kMaxPinsBytesOfAll = std::size_t{1} << 30U;

// encode() appends, so that a Bytes can be used again and again. decode() refuses what is short,
// long, out of range or more than the limits above.

// A registration has come. Sent with every backend's key for it.
struct PinMessage {
  PinInfo info = {};
  std::vector<std::pair<std::string, base::Bytes>> keys = {};  // backend, Backend::pin's key
  void encode(base::Bytes& out) const;
  static Result<PinMessage> decode(std::span<const std::byte> payload);
  std::size_t cost() const;  // to a peer: what it keeps in all its tables, roughly
  friend bool operator==(const PinMessage&, const PinMessage&) = default;
};

// The registration of that slot, announced next, may not be written: peers of minor version 2 and
// older skip this, and learn it from a refusal.
struct ReadOnlyMessage {
  std::uint32_t slot = 0;
  void encode(base::Bytes& out) const;
  static Result<ReadOnlyMessage> decode(std::span<const std::byte> payload);
};

// A registration is gone.
struct UnpinMessage {
  std::uint32_t slot = 0;
  void encode(base::Bytes& out) const;
  static Result<UnpinMessage> decode(std::span<const std::byte> payload);
};

// From a backend's link to the same-named one at the other end. A view: nothing is copied.
struct BackendMessage {
  std::string_view backend = {};
  std::span<const std::byte> bytes = {};
  // What stands before `bytes`, for Connection::sendParts.
  static void encodeHead(std::string_view backend, base::Bytes& out);
  static Result<BackendMessage> decode(std::span<const std::byte> payload);
};

// The agent goes, on purpose.
struct ByeMessage {
  std::string why = {};
  void encode(base::Bytes& out) const;  // no more than kMaxByeBytes of `why`
  static Result<ByeMessage> decode(std::span<const std::byte> payload);
};

// An end of a session whose connection is to be replaced by the one that this goes over: which life
// of it, how many numbered frames that end has heard, and the proof that it is that end.
struct ResumeMessage {
  std::uint64_t epoch = 0, heard = 0;
  base::Key proof = {};
  void encode(base::Bytes& out) const;
  static Result<ResumeMessage> decode(std::span<const std::byte> payload);
  friend bool operator==(const ResumeMessage&, const ResumeMessage&) = default;
};

// The listener does not want the dialer: judge()'s error.
struct RefuseMessage {
  Error why = {};
  void encode(base::Bytes& out) const;  // no more than kMaxReasonBytes of each text
  static Result<RefuseMessage> decode(std::span<const std::byte> payload);
};

}  // namespace viaduct::agent
