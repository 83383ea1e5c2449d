// The small blob that admits its holder to an agent. Threads: plain values.
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
  std::array<std::uint8_t, 16> agent = {};   // identifies this agent; after a restart it differs
  std::string boot = {};                     // identifies the running kernel of its host
  std::string unix_name = {};                // abstract Unix socket of its listener; may be empty
  std::vector<std::string> addresses = {};   // "host:port", "[v6]:port"
  std::array<std::uint8_t, 32> secret = {};  // admits its holder: treat a Card like a password
  std::vector<PinInfo> pins = {};            // the pins at the time of export

  std::vector<std::byte> encode() const;
  // Refuses a blob that is truncated, corrupted or of another version; the error says which.
  static Result<Card> decode(std::span<const std::byte> blob);
};

}  // namespace viaduct
