// Copies by memcpy or past the cache, whichever is quicker for the memory at hand. Threads: one at
// a time per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace viaduct::base {

// memcpy wins where source and target are in the cache, and loses a third or more where they are
// not (docs/measured/local.md). So the first pieces of a job go by memcpy, and against the clock:
// slower than non-temporal stores can be, they were not in the cache, and the rest goes past it.
class AdaptiveCopy {
 public:
  enum class Strategy : std::uint8_t { kMeasure, kPlain, kWide };
  // A job with fewer bytes is not worth measuring.
  static constexpr std::uint64_t kLeastMeasured = std::uint64_t{64} << 10U;

  // Measures the rate that probes compare with: about 0.2 ms and an allocation, once a process. A
  // job that comes before it waits for it.
  static void measureReference();

  // A job of at least `bytes` begins. It keeps one strategy, or its first pieces decide.
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
  // On return everything copied so far is ordered before later writes.
  void finish() {
    if (unfinished_) finishStores();
  }

 private:
  void beginOther(Strategy strategy, std::uint64_t bytes);
  void copyOther(std::byte* to, const std::byte* from, std::size_t bytes);
  std::size_t probe(std::byte* to, const std::byte* from, std::size_t bytes);
  void startProbe();
  void finishStores();

  bool plain_ = true;  // all of the job
  Strategy strategy_ = Strategy::kPlain;
  bool measured_ = false;    // the strategy was found by a probe, and the next one may change it
  bool unfinished_ = false;  // there were non-temporal stores since the last finish()
  std::uint64_t idle_ = 0;   // bytes until the clock starts: earlier stores may hold them up
  std::uint64_t timed_ = 0;  // bytes that the probe still has to time
  std::uint64_t ticks_ = 0;  // that its bytes took so far
  std::uint64_t probe_ = 0;  // its bytes
  std::uint64_t until_next_ = 0;  // bytes until the next probe
};

}  // namespace viaduct::base
