// The small blob one agent gives another so that it may come in. Threads: plain values.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace viaduct {

struct Card {
  std::string name = {};
  std::array<std::uint8_t, 16> agent = {};   // this life of the agent; a restart has another
  std::string boot = {};                     // which running kernel it lives on
  std::string unix_name = {};                // abstract Unix socket of its listener; may be empty
  std::vector<std::string> addresses = {};   // "host:port", "[v6]:port"
  std::array<std::uint8_t, 32> secret = {};  // lets the holder in: treat a Card like a password
  std::vector<PinInfo> pins = {};            // what was registered when the Card was made

  std::vector<std::byte> encode() const;
  // Refuses what is truncated, corrupted or of another version, and says which.
  static Result<Card> decode(std::span<const std::byte> blob);
};

}  // namespace viaduct
