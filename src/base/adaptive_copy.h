// Copies by memcpy or past the cache, whichever is quicker for this memory. Threads: one at a time
// per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace viaduct::base {

// memcpy wins if source and target are in the cache; otherwise it loses a third or more
// (docs/measured/local.md). So memcpy copies the first pieces of a job against the clock. If it is
// slower than non-temporal stores can be, the pieces were not in the cache, and the job bypasses
// the cache until the next such probe.
class AdaptiveCopy {
 public:
  enum class Strategy : std::uint8_t { kMeasure, kPlain, kWide };
  // A job with fewer bytes is too short to measure.
  static constexpr std::uint64_t kLeastMeasured = std::uint64_t{64} << 10U;

  // Measures the rate that probes compare with, once per process: about 0.2 ms and an allocation.
  // Without this call, the first probe measures it.
  static void measureReference();

  // Begins a job of at least `bytes`. The strategy is fixed, or the job's first pieces decide it.
  void begin(Strategy strategy, std::uint64_t bytes) {
    plain_ = strategy == Strategy::kPlain;
    if (!plain_) beginOther(strategy, bytes);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (plain_)
      std::memcpy(to, from, bytes);
    else
      copyOther(to, from, bytes);
  }
  // Whether memcpy copies the whole job, for example because the job is short.
  bool plain() const { return plain_; }
  // Orders everything copied so far before later writes.
  void finish() {
    if (unfinished_) finishStores();
  }

 private:
  void beginOther(Strategy strategy, std::uint64_t bytes);
  void copyOther(std::byte* to, const std::byte* from, std::size_t bytes);
  std::size_t probe(std::byte* to, const std::byte* from, std::size_t bytes);
  void startProbe();
  void finishStores();

  bool plain_ = true;  // memcpy for the whole job
  Strategy strategy_ = Strategy::kPlain;
  bool measured_ = false;    // probes choose the strategy
  bool unfinished_ = false;  // non-temporal stores since the last finish()
  std::uint64_t idle_ = 0;   // bytes until the clock starts, because earlier stores may delay them
  std::uint64_t timed_ = 0;  // bytes that the probe still has to time
  std::uint64_t ticks_ = 0;  // clock ticks of the bytes that the probe has timed so far
  std::uint64_t probe_ = 0;  // the number of bytes that each probe times
  std::uint64_t until_next_ = 0;  // bytes until the next probe
};

}  // namespace viaduct::base
