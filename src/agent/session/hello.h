// What the two ends of a session tell each other about themselves. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace viaduct::agent {

inline constexpr std::size_t kMaxNameBytes = 255;        // of agents, backends, hosts
inline constexpr std::size_t kMaxAddresses = 256;        // of one agent
inline constexpr std::size_t kMaxBackends = 64;          // of one agent
inline constexpr std::size_t kMaxBlobBytes = 1U << 15U;  // a backend's address or key

// Of a session's lives: far more than there can be, and one more is still a number.
inline constexpr std::uint64_t kMaxEpoch = std::uint64_t{1} << 63U;

struct Hello {
  std::string name = {};
  std::array<std::uint8_t, 16> agent = {};    // this life of the agent
  std::array<std::uint8_t, 16> process = {};  // random per process: the same in two agents of one
  std::string boot = {};                      // which running kernel
  std::string unix_name = {};                 // of its abstract Unix socket; may be empty
  std::vector<std::string> addresses = {};
  std::uint64_t last_epoch = 0;  // of the last session with this peer that it remembers
  std::uint32_t detect_ms = 0;   // it takes us for lost after so long a silence
  std::vector<std::pair<std::string, base::Bytes>> backends = {};  // name, Backend::address()

  // Appends to `out`.
  void encode(base::Bytes& out) const;
  static Result<Hello> decode(std::span<const std::byte> payload);
  friend bool operator==(const Hello&, const Hello&) = default;
};

}  // namespace viaduct::agent
