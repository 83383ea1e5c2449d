// The messages between the two ends of a local link. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "base/bytes.h"

namespace viaduct::local {

using Token = std::array<std::uint8_t, 16>;

// The first message, sent once. Between processes its fds are the gate of our memory, the live
// table, and our pidfd. Within a process, `door` finds these instead.
struct LocalHello {
  Token door = {};
  std::uint64_t probe_address = 0;    // address of the token in our memory
  std::uint64_t scratch_address = 0;  // as many bytes, to which the probe may write
  Token probe = {};
  friend bool operator==(const LocalHello&, const LocalHello&) = default;
};
// A memfd that contains registrations; the message carries its fd.
struct FileOffer {
  std::uint32_t file = 0;  // the sender's number for it; pin keys name it
  std::uint64_t bytes = 0;
  friend bool operator==(const FileOffer&, const FileOffer&) = default;
};
struct FileGone {
  std::uint32_t file = 0;
  friend bool operator==(const FileGone&, const FileGone&) = default;
};
using LocalMessage = std::variant<LocalHello, FileOffer, FileGone>;

base::Bytes encode(const LocalMessage& message);
Result<LocalMessage> decode(std::span<const std::byte> bytes);

// The key of a registration for peers, as Backend::pin returns it.
struct PinKey {
  std::uint64_t generation = 0;
  bool in_file = false;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const PinKey&, const PinKey&) = default;
};
base::Bytes encodeKey(const PinKey& key);
Result<PinKey> decodeKey(std::span<const std::byte> bytes);

}  // namespace viaduct::local
