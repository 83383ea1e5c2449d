#include "measure/proof/memory_rate.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/sizes.h"
#include "base/wide_copy.h"
#include "host/facts.h"
#include "host/memory.h"

namespace viaduct::measure::proof {
namespace {

// More threads do not copy faster on any known machine, and their buffers take long to allocate.
constexpr std::uint32_t kMostThreads = 32;
// Buffer sizes of each thread: from larger than a core's caches down to its first-level cache. So
// each row finds a size near its own working set.
constexpr std::size_t kLarge = std::size_t{16} << 20U;
constexpr std::array kSizes{kLarge, kLarge / 4, kLarge / 16, kLarge / 64, kLarge / 256};
constexpr double kPass = 0.002;  // seconds
constexpr int kPasses = 4;
// Bytes copied between two readings of the clock.
constexpr std::size_t kBetweenLooks = std::size_t{1} << 20U;

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* at) const { ::munmap(at, bytes); }
};

// The memory of one thread: a source, followed by a destination.
class Buffers {
 public:
  explicit Buffers(std::size_t each) : each_(each) {
    void* at = ::mmap(nullptr, 2 * each, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return;
    // Huge pages are faster to allocate, and avoid page walks in the measured time.
    ::madvise(at, 2 * each, MADV_HUGEPAGE);
    std::memset(at, 1, 2 * each);
    memory_ = {static_cast<std::byte*>(at), Unmap{2 * each}};
  }
  explicit operator bool() const { return memory_ != nullptr; }
  const std::byte* source() const { return memory_.get(); }
  std::byte* destination() const { return memory_.get() + each_; }

 private:
  const std::size_t each_;
  std::unique_ptr<std::byte, Unmap> memory_;
};

// Returns the CPU time of this thread. Other programs on its core do not lower a rate by CPU time.
double cpuSeconds() {
  timespec at{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9;
}

// Copies `bytes` repeatedly for one pass in one thread. Returns the bytes a second.
double copyFor(const Buffers& buffers, std::size_t bytes, bool wide) {
  const double start = cpuSeconds();
  std::uint64_t done = 0;
  double took = 0;
  do {
    for (std::size_t some = 0; some < kBetweenLooks; some += bytes) {
      if (wide)
        base::copyWide(buffers.destination(), buffers.source(), bytes);
      else
        std::memcpy(buffers.destination(), buffers.source(), bytes);
      done += bytes;
    }
    base::finishWide();
    took = cpuSeconds() - start;
  } while (took < kPass);
  return static_cast<double>(done) / took;
}

class CopyThreads {
 public:
  CopyThreads(std::uint32_t threads, std::uint64_t working_set)
      : threads_(threads), gate_(threads), sizes_(kSizes.begin(), kSizes.end()) {
    const std::uint64_t each = mostBytes(working_set) / threads;
    if (each > kLarge) sizes_.insert(sizes_.begin(), each / base::kMiB * base::kMiB);
  }

  MemoryRates measure() {
    std::vector<std::thread> others;
    for (std::uint32_t i = 1; i < threads_; ++i) others.emplace_back([this] { work(false); });
    work(true);
    for (std::thread& other : others) other.join();
    if (failed_.load()) return {};
    std::reverse(out_.all_threads.begin(), out_.all_threads.end());
    out_.threads = threads_;
    return out_;
  }

 private:
  // Returns the bytes that all threads may copy from. They are at most an eighth of the available
  // memory, because other programs need memory too.
  static std::uint64_t mostBytes(std::uint64_t working_set) {
    return std::min({working_set, kLargestCopied, host::availableMemory() / 8});
  }

  // Runs in each thread. The first thread also measures its rate alone, and collects the results.
  void work(bool first) {
    const Buffers own(sizes_.front());
    if (!own) failed_.store(true);
    gate_.arrive_and_wait();
    if (failed_.load()) return;
    if (first) out_.one_thread_gb_per_s = best(own, sizes_.front()) * 1e-9;
    for (const std::size_t bytes : sizes_) {
      const double all = together(own, bytes, first);
      if (first) out_.all_threads.push_back({bytes * threads_, all * 1e-9});
    }
  }
  static double best(const Buffers& buffers, std::size_t bytes) {
    double out = 0;
    for (int pass = 0; pass < kPasses; ++pass)
      for (const bool wide : {true, false}) out = std::max(out, copyFor(buffers, bytes, wide));
    return out;
  }
  // Returns the sum of the threads' rates while all of them copy.
  double together(const Buffers& buffers, std::size_t bytes, bool first) {
    if (first) sum_.store(0);
    gate_.arrive_and_wait();
    sum_.fetch_add(best(buffers, bytes));
    gate_.arrive_and_wait();
    return sum_.load();
  }

  const std::uint32_t threads_;
  std::barrier<> gate_;
  std::vector<std::size_t> sizes_;  // of each thread, descending
  std::atomic<double> sum_{0};
  std::atomic<bool> failed_{false};
  MemoryRates out_;
};

}  // namespace

MemoryRates measureMemoryRates(std::uint64_t working_set) {
  return CopyThreads(std::clamp(host::facts().cores, 1U, kMostThreads), working_set).measure();
}

MemoryRates memoryRates(std::uint64_t working_set) {
  static std::mutex mutex;
  static MemoryRates rates;
  static std::uint64_t largest = 0;
  const std::lock_guard held(mutex);
  if (rates.threads != 0 && working_set <= largest) return rates;
  rates = measureMemoryRates(working_set);
  largest = working_set;
  return rates;
}

double copyCeiling(std::span<const CopyRate> rates, std::uint64_t bytes) {
  // Smaller buffers copy faster, so the next smaller measured size gives an upper bound.
  double out = 0;
  for (const CopyRate& rate : rates)
    if (out == 0 || rate.bytes <= bytes) out = rate.gb_per_s;
  return out;
}

}  // namespace viaduct::measure::proof
