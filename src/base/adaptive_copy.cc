#include "base/adaptive_copy.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/wide_copy.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace viaduct::base {
namespace {

constexpr std::uint64_t kLeastProbe = std::uint64_t{4} << 10U, kMostProbe = 4 * kLeastProbe;
// memcpy counts as slow below three quarters of the rate of non-temporal stores in the cache. On an
// AMD EPYC 7003 and an Intel Xeon, memcpy is that slow only where non-temporal stores are faster.
constexpr double kSlower = 4.0 / 3;
// The probe is repeated, because only the first part of a job may be in the cache.
constexpr std::uint64_t kBetweenProbes = std::uint64_t{4} << 20U;

#if defined(__x86_64__)
std::uint64_t ticksNow() { return __rdtsc(); }
#else
std::uint64_t ticksNow() { return 0; }  // probes then choose memcpy, this processor's only copy
#endif

// The least ticks per byte of non-temporal stores here, with source and target in the cache.
double measuredTicksPerByte() {
  constexpr std::size_t kBytes = 128U << 10U;  // source and target together fit the L2 cache
  // The bytes are not zeros, because an AMD EPYC 7003 streams zeros twice as fast as other values.
  std::vector<std::byte> from(kBytes, std::byte{0x5a}), to(kBytes, std::byte{0xa5});
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before = ticksNow();
    copyWide(to.data(), from.data(), kBytes);
    finishWide();
    least = std::min(least, ticksNow() - before);
  }
  return static_cast<double>(least) / kBytes;
}

double wideTicksPerByte() {
  static const double measured = measuredTicksPerByte();
  return measured;
}

}  // namespace

void AdaptiveCopy::measureReference() { static_cast<void>(wideTicksPerByte()); }

void AdaptiveCopy::beginOther(Strategy strategy, std::uint64_t bytes) {
  strategy_ = strategy;
  measured_ = strategy == Strategy::kMeasure;
  if (!measured_) return;
  probe_ = std::clamp(bytes / 32, kLeastProbe, kMostProbe);
  startProbe();
}

void AdaptiveCopy::startProbe() {
  strategy_ = Strategy::kMeasure;
  idle_ = timed_ = probe_;
  ticks_ = 0;
}

void AdaptiveCopy::copyOther(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (strategy_ == Strategy::kMeasure) {
    const std::size_t done = probe(to, from, bytes);
    to += done;
    from += done;
    bytes -= done;
  }
  if (bytes == 0) return;
  if (strategy_ == Strategy::kWide) {
    copyWide(to, from, bytes);
    unfinished_ = true;
  } else {
    std::memcpy(to, from, bytes);
  }
  if (!measured_) return;
  until_next_ -= std::min<std::uint64_t>(until_next_, bytes);
  if (until_next_ == 0) startProbe();
}

// Copies the bytes that the probe still needs, and returns their number.
std::size_t AdaptiveCopy::probe(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t idle = std::min<std::size_t>(idle_, bytes);
  const std::size_t timed = std::min<std::size_t>(timed_, bytes - idle);
  std::memcpy(to, from, idle);
  const std::uint64_t before = ticksNow();
  std::memcpy(to + idle, from + idle, timed);
  ticks_ += ticksNow() - before;
  idle_ -= idle;
  timed_ -= timed;
  if (timed_ == 0) {
    const double quick = kSlower * wideTicksPerByte() * static_cast<double>(probe_);
    strategy_ = static_cast<double>(ticks_) > quick ? Strategy::kWide : Strategy::kPlain;
    until_next_ = kBetweenProbes;
  }
  return idle + timed;
}

void AdaptiveCopy::finishStores() {
  finishWide();
  unfinished_ = false;
}

}  // namespace viaduct::base
