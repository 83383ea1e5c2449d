// Orders two flows of a chain: one flow fills a ring, and the other flow empties it. Threads:
// any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace viaduct::measure::pipeline {

// The progress of both flows.
struct RingCounts {
  std::uint64_t filled = 0, emptied = 0;  // chunks, counted over all passes
  bool complete = false;                  // no further chunk will be filled
  bool broken = false;                    // one of the flows has failed or was cancelled
};

// A pass moves all chunks of a transfer. Chunk i of each pass has place i modulo `places` of the
// ring. If the flows belong to two members, each member has a gate and tells the other member about
// changes.
class RingGate {
 public:
  RingGate(std::uint64_t chunks, std::uint64_t places) : chunks_(chunks), places_(places) {}

  // Called after each change by a flow of this member. If it returns false, tellAgain() calls it
  // again.
  using Tell = std::function<bool(const RingCounts&)>;
  void tellWith(Tell tell) { tell_ = std::move(tell); }
  void tellAgain();
  // Takes the other member's counts.
  void hear(const RingCounts& counts);

  enum class Turn : std::uint8_t { kNow, kLater, kComplete, kBroken };
  // Wait up to `patience` until all chunks with numbers below `end` may be filled or emptied.
  // Return whether they may.
  Turn toFill(std::uint64_t end, std::chrono::nanoseconds patience);
  Turn toEmpty(std::uint64_t end, std::chrono::nanoseconds patience);
  // Report that all chunks with numbers below `end` are filled or emptied.
  void fill(std::uint64_t end);
  void empty(std::uint64_t end);
  // Reports that no further chunk will be filled. Filled chunks may still be emptied.
  void complete();
  // Ends the other flow early.
  void fail();

 private:
  std::optional<std::uint64_t> before(std::uint64_t chunk) const;
  Turn fillTurn(std::uint64_t end) const;
  Turn emptyTurn(std::uint64_t end) const;
  Turn await(std::chrono::nanoseconds patience, const std::function<Turn()>& turn);
  void change(const std::function<void(RingCounts&)>& how);

  const std::uint64_t chunks_, places_;
  Tell tell_ = {};
  std::mutex mutex_;
  std::condition_variable changed_;
  RingCounts counts_ = {};  // guarded by mutex_, as all further members
  bool told_ = true;
};

}  // namespace viaduct::measure::pipeline
