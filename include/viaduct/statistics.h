// The statistics of an agent: counts since it was opened, and its present peers and pins. Threads:
// plain values.
#pragma once

#include <viaduct/peer.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>
#include <viaduct/transfer.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace viaduct {

inline constexpr std::size_t kCodes = static_cast<std::size_t>(kLastCode) + 1;
inline constexpr std::size_t kPeerStates = static_cast<std::size_t>(PeerState::kDraining) + 1;

// The faults that VIADUCT_FAULTS injects: docs/faults.md.
enum class FaultKind : std::uint8_t { kDelay, kStop, kCorrupt, kDropRail, kKillPeer, kLateLease };
inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(FaultKind::kLateLease) + 1;
const char* faultKindName(FaultKind kind);  // as VIADUCT_FAULTS writes it

// The durations of transfers, from post() until the agent saw their end. If transfers follow each
// other so fast that reading the clock would cost time, a random few are timed. Each of them counts
// for several.
struct Latencies {
  // The upper bounds of all buckets but the last, which has none.
  static constexpr std::array<std::chrono::nanoseconds, 26> kBounds = [] {
    std::array<std::chrono::nanoseconds, 26> bounds{};
    std::int64_t decade = 100;  // 200 ns, 500 ns, 1 us, 2 us, ... 50 s
    std::size_t next = 0;
    for (const int step : {2, 5}) bounds[next++] = std::chrono::nanoseconds(decade * step);
    while (next < bounds.size()) {
      decade *= 10;
      for (const int step : {1, 2, 5}) bounds[next++] = std::chrono::nanoseconds(decade * step);
    }
    return bounds;
  }();
  static constexpr std::size_t kBuckets = kBounds.size() + 1;

  std::array<std::uint64_t, kBuckets> counts = {};
  std::chrono::nanoseconds sum{0};

  void add(std::chrono::nanoseconds time, std::uint64_t times);
};

// The running transfers of one class at a rail.
struct RailQueue {
  std::uint64_t works = 0;  // parts of transfers that the rail has, and that have not ended
  std::chrono::nanoseconds oldest{0};  // since the oldest of their transfers was posted
};

// The kernel's figures of a rail's TCP sockets, added up, and one figure of our own (`sealing`).
// The counts include those of closed sockets.
struct SocketStatistics {
  std::uint64_t sockets = 0;                         // open now
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // acknowledged, and received in order
  // repeated_segments leaves out repetitions of segments that the receiver had already.
  std::uint64_t sent_segments = 0, repeated_segments = 0;  // sent_segments includes all repetitions
  // The kernel counts the next three in steps of up to 10 ms.
  std::chrono::nanoseconds busy{0};            // time with unsent or unacknowledged data
  std::chrono::nanoseconds send_limited{0};    // part of `busy`: the send buffer was full
  std::chrono::nanoseconds window_limited{0};  // part of `busy`: the receiver's window was full
  // Processor time in which protected data was sealed and opened, estimated from a sample.
  std::chrono::nanoseconds sealing{0};
  // Each of these three is the least of all open sockets; 0: none has sent anything.
  std::chrono::nanoseconds round_trip{0};
  std::uint32_t segment_bytes = 0, path_mtu = 0;
  friend bool operator==(const SocketStatistics&, const SocketStatistics&) = default;
};

// One rail of a backend. Bytes and ops count once their post has ended.
struct RailStatistics {
  std::string backend = {};
  std::string rail = {};
  std::uint64_t bytes = 0;
  std::uint64_t ops = 0;
  std::uint64_t times_set_aside = 0;  // times that it was set aside: docs/failure.md
  // Slices of transfers that failed here, by their Code. Another rail may have moved them
  // afterwards.
  std::array<std::uint64_t, kCodes> errors = {};
  std::array<RailQueue, kPriorities> queues = {};  // now, by Priority
  std::optional<SocketStatistics> sockets = {};    // nothing: its backend does not tell
};

// The links that one backend has to ready peers. An unusable link is one that should reach its peer
// but cannot, so another backend moves the bytes. A same-host backend has no link to another host.
struct LinkStatistics {
  std::string backend = {};
  std::uint64_t usable = 0, unusable = 0;
  // Usable links by the protection of their data that is in force, by Privacy. Links whose backend
  // protects no data, and unprotected ones within one host, are not in it.
  std::array<std::uint64_t, kPrivacies> protections = {};
};

// The leases that an agent lends, or those that it has borrowed: live now, and ended, by outcome.
struct LeaseStatistics {
  std::uint64_t live = 0;
  std::uint64_t returned = 0, expired = 0, revoked = 0, peer_lost = 0;
};

struct Statistics {
  std::string agent = {};     // name of the agent
  std::string endpoint = {};  // "host:port" of its metrics; empty: it has none
  std::uint64_t started = 0, done = 0, failed = 0, cancelled = 0;  // posts of transfers
  Latencies latencies = {};  // times of posts in `done`: a sample
  std::vector<RailStatistics> rails = {};
  std::vector<LinkStatistics> links = {};  // of each open backend
  std::uint64_t rdma_ports = 0;            // of this host, also if no open backend uses them
  // Transfers that failed before any rail got a slice of them, by their Code.
  std::array<std::uint64_t, kCodes> errors_without_rail = {};
  std::uint64_t notes_sent = 0, notes_received = 0;
  std::uint64_t sessions_lost = 0;                    // without those that the peer ended
  std::array<std::uint64_t, kPeerStates> peers = {};  // known now, by their PeerState
  std::uint64_t pins = 0, pinned_bytes = 0;           // at present
  LeaseStatistics lent = {}, borrowed = {};
  // Posts and tickets that came after the end of their lease, and posts cut off by that end.
  std::uint64_t stale = 0;
  bool draining = false;  // Agent::drain() runs
  // Faults that VIADUCT_FAULTS has injected, by their FaultKind. Nothing: it is not set.
  std::optional<std::array<std::uint64_t, kFaultKinds>> faults = {};
};

}  // namespace viaduct
