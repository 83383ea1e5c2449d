// The facts that the two ends of a session tell each other about themselves. Threads: plain values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/session/features.h"
#include "base/fields.h"

namespace viaduct::agent {

inline constexpr std::size_t kMaxNameBytes = 255;        // of agents, backends, hosts
inline constexpr std::size_t kMaxAddresses = 256;        // of one agent
inline constexpr std::size_t kMaxBackends = 64;          // of one agent
inline constexpr std::size_t kMaxBlobBytes = 1U << 15U;  // a backend's address or key

// The limit of a session's epoch. No session reaches it, and one more does not overflow.
inline constexpr std::uint64_t kMaxEpoch = std::uint64_t{1} << 63U;

// A backend's name, with its address or with its key of a pin.
struct BackendBlob {
  std::string backend = {};
  base::Bytes bytes = {};
  friend bool operator==(const BackendBlob&, const BackendBlob&) = default;
};
auto fields(base::Is<BackendBlob> auto& b) {
  return base::list(base::line(kMaxNameBytes, b.backend), base::atMost(kMaxBlobBytes, b.bytes));
}

inline bool arePrintable(const std::vector<std::string>& texts) {
  return std::ranges::all_of(texts, [](const auto& text) { return base::isPrintable(text); });
}

struct Hello {
  static constexpr std::string_view kName = "hello";
  std::string name = {};
  std::array<std::uint8_t, 16> agent = {};    // random per agent
  std::array<std::uint8_t, 16> process = {};  // random per process: equal in two agents of one
  std::string boot = {};                      // identifies the running kernel
  std::string unix_name = {};                 // the name of its abstract Unix socket, or empty
  std::vector<std::string> addresses = {};
  // The epoch of the last session with this peer.
  std::uint64_t last_epoch = 0;
  std::uint32_t detect_ms = 0;            // the sender's Settings::detect: longer silence is a loss
  std::uint64_t features = kOurFeatures;  // a bit for each Feature
  std::vector<BackendBlob> backends = {};  // with Backend::address()
  friend bool operator==(const Hello&, const Hello&) = default;
};
auto fields(base::Is<Hello> auto& h) {
  return base::list(base::line(kMaxNameBytes, h.name), base::must([&h] { return !h.name.empty(); }),
                    h.agent, h.process, base::line(kMaxNameBytes, h.boot),
                    base::line(kMaxNameBytes, h.unix_name),
                    base::atMost(kMaxAddresses, h.addresses, kMaxNameBytes),
                    base::must([&h] { return arePrintable(h.addresses); }),
                    base::atMost(kMaxEpoch - 1, h.last_epoch), h.detect_ms, h.features,
                    base::must([&h] { return (h.features & bitOf(Feature::kBase)) != 0; }),
                    base::atMost(kMaxBackends, h.backends));
}

}  // namespace viaduct::agent
