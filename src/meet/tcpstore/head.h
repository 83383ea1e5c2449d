// The value of a published key at a TCPStore. Also the names of the keys that announce its changes,
// and those of questions to its owner and of the answers. The store has no expiry, no listing and
// no watch (docs/design/0067-places-are-folders.md). Threads: plain values.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "base/fields.h"
#include "meet/records.h"

namespace viaduct::meet::tcpstore {

// Only COMPARE_SET changes a head, so each change has one author.
struct Head {
  static constexpr std::uint8_t kKind = 3;
  std::uint64_t generation = 0;  // one more with each change
  std::string owner = {};        // the keeper that answers questions about the key
  bool present = false;          // false: withdrawn
  Entry entry = {};
};
auto fields(base::Is<Head> auto& h) {
  return base::list(h.generation, base::line(64, h.owner), h.present, h.entry);
}

// The key that exists once the head has had that generation. So a WAIT for this key ends with the
// change.
inline std::string changeKey(const std::string& head, std::uint64_t generation) {
  return fmt::format("{}/{}", head, generation);
}

// The keys between one keeper and its readers. The keeper counts its answers in `beat`. A reader
// takes that number n, sets `question` n and waits for `answer` n.
struct OwnerKeys {
  std::string beat = {};
  std::string question(std::uint64_t n) const { return fmt::format("{}/q{}", beat, n); }
  std::string answer(std::uint64_t n) const { return fmt::format("{}/a{}", beat, n); }
};
inline OwnerKeys ownerKeys(const std::string& root, const std::string& owner) {
  return {.beat = fmt::format("{}/owner/{}", root, owner)};
}

}  // namespace viaduct::meet::tcpstore
