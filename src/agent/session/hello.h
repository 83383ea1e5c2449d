// The facts that the two ends of a session tell each other about themselves. Threads: plain values.
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

// The limit of a session's epoch. No session reaches it, and one more does not overflow.
inline constexpr std::uint64_t kMaxEpoch = std::uint64_t{1} << 63U;

struct Hello {
  std::string name = {};
  std::array<std::uint8_t, 16> agent = {};    // random per agent
  std::array<std::uint8_t, 16> process = {};  // random per process: equal in two agents of one
  std::string boot = {};                      // identifies the running kernel
  std::string unix_name = {};                 // the name of its abstract Unix socket, or empty
  std::vector<std::string> addresses = {};
  // The epoch of the last session with this peer.
  std::uint64_t last_epoch = 0;
  std::uint32_t detect_ms = 0;  // the sender's Settings::detect; beyond it a peer is lost
  std::vector<std::pair<std::string, base::Bytes>> backends = {};  // name, Backend::address()

  // Appends the encoding to `out`.
  void encode(base::Bytes& out) const;
  static Result<Hello> decode(std::span<const std::byte> payload);
  friend bool operator==(const Hello&, const Hello&) = default;
};

}  // namespace viaduct::agent
