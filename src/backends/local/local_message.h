// What the two ends of a local link say to each other. Threads: plain values.
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

// First, once. Between processes its fds are the gate for our memory, the live table, and a pidfd
// of ourselves; within a process `door` finds them instead.
struct LocalHello {
  Token door = {};
  std::uint64_t probe_address = 0;    // where `probe` lies in our memory
  std::uint64_t scratch_address = 0;  // as many bytes that may be written, to try it
  Token probe = {};
  friend bool operator==(const LocalHello&, const LocalHello&) = default;
};
// A memfd that registrations lie in; its fd comes along.
struct FileOffer {
  std::uint32_t file = 0;  // its number in this life of the link
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

// What Backend::pin tells peers of a registration.
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
