#include "backends/local/populator.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/blocked_signals.h"
#include "base/log.h"
#include "base/sizes.h"
#include "host/memory.h"

namespace viaduct::local {
namespace {

using std::chrono::milliseconds;

// About half a millisecond of page faults: docs/measured/local.md
constexpr std::uint64_t kStep = std::uint64_t{512} << 10U;
// The faults of smaller memory cost less than starting a thread and waking it.
constexpr std::uint64_t kLeast = std::uint64_t{256} << 10U;
constexpr unsigned kStepsBetweenLooks = 32;
constexpr std::uint64_t kShareOfFree = 4;
// Pauses between passes over a peer's memory. Each pass without progress doubles the pause, so that
// the last pass is 1.27 s after the last progress.
constexpr milliseconds kFirstPause{10}, kLastPause{640};
constexpr std::size_t kSmallestPage = 4096;
constexpr int kNice = 10;

std::size_t pageSize() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

// The whole pages that contain the memory.
std::span<std::byte> pagesOf(std::span<std::byte> memory) {
  const std::size_t before = reinterpret_cast<std::uintptr_t>(memory.data()) % pageSize();
  const std::size_t bytes = (before + memory.size() + pageSize() - 1) / pageSize() * pageSize();
  return {memory.data() - before, bytes};
}

enum class StepResult : std::uint8_t { kDone, kAgain, kStop };

StepResult refused(const char* call) {
  if (errno == EINTR || errno == EAGAIN) return StepResult::kAgain;
  base::log(base::LogLevel::kDebug, "local: memory is not populated: {}: {}", call,
            std::strerror(errno));
  return StepResult::kStop;
}

// Kernels before 5.14 refuse this advice (EINVAL).
StepResult populate(std::span<std::byte> memory, int advice) {
  return ::madvise(memory.data(), memory.size(), advice) == 0 ? StepResult::kDone
                                                              : refused("madvise");
}

// A read fault allocates an absent page of a memfd, as a write fault does. In other memory, such as
// a private copy, it allocates nothing.
StepResult populateAll(std::span<std::byte> step) { return populate(step, MADV_POPULATE_READ); }

// Uses write faults, which mark the page table's entry dirty; after a read fault the first store
// would do so: docs/measured/local.md
StepResult populateResident(std::span<std::byte> step) {
  std::array<unsigned char, kStep / kSmallestPage> resident;
  if (::mincore(step.data(), step.size(), resident.data()) != 0) return refused("mincore");
  const auto pages = std::span(resident).first(step.size() / pageSize());
  std::size_t mapped = 0;
  for (std::size_t first = 0; first < pages.size(); ++first) {
    std::size_t end = first;
    while (end < pages.size() && (pages[end] & 1U) != 0) ++end;
    if (end == first) continue;
    const auto run = step.subspan(first * pageSize(), (end - first) * pageSize());
    if (const StepResult outcome = populate(run, MADV_POPULATE_WRITE); outcome != StepResult::kDone)
      return outcome;
    mapped += end - first;
    first = end;
  }
  return mapped == pages.size() ? StepResult::kDone : StepResult::kAgain;
}

bool mayPopulate(std::uint64_t bytes, std::uint64_t free) {
  if (bytes <= free / kShareOfFree) return true;
  base::log(base::LogLevel::kDebug, "local: memory is not populated: only {} is free",
            base::roundedSize(free));
  return false;
}

}  // namespace

Populator::Populator(std::uint64_t most)
    : Populator(most, [] { return host::availableMemory(); }) {}

Populator::Populator(std::uint64_t most, FreeMemory free_memory)
    : free_memory_(std::move(free_memory)), budgets_{base::Budget(most), base::Budget(most)} {}

Populator::~Populator() {
  {
    const Lock lock(mutex_);
    over_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Populator::RangeId Populator::add(std::span<std::byte> memory, Pages pages) {
  const Lock lock(mutex_);
  memory = pagesOf(memory);
  memory = memory.first(std::min(memory.size(), budget(pages).left() / pageSize() * pageSize()));
  if (memory.size() < kLeast || !start()) return 0;
  budget(pages).take(memory.size());
  ranges_.emplace(++last_, Range{.memory = memory,
                                 .pages = pages,
                                 .done = std::vector<bool>((memory.size() + kStep - 1) / kStep),
                                 .pause = kFirstPause});
  queue_.emplace(Clock::now(), last_);
  work_.notify_one();
  return last_;
}

void Populator::remove(RangeId id) {
  if (id == 0) return;
  Lock lock(mutex_);
  const auto range = ranges_.extract(id);  // extract() keeps it valid for a step in progress
  if (!range) return;
  stepped_.wait(lock, [&] { return stepping_ != id; });
  populated_ -= range.mapped().populated;
  budget(range.mapped().pages).give(range.mapped().memory.size());
}

bool Populator::idle() const {
  const Lock lock(mutex_);
  return queue_.empty() && stepping_ == 0;
}

bool Populator::start() {
  if (thread_.joinable()) return true;
  const base::BlockedSignals blocked;
  try {
    thread_ = std::thread([this] { run(); });
    ::pthread_setname_np(thread_.native_handle(), "viaduct-pages");
  } catch (const std::system_error& error) {  // slower at first, not wrong
    base::log(base::LogLevel::kWarning, "local: memory is not populated: no thread: {}",
              error.what());
    return false;
  }
  return true;
}

void Populator::run() {
  // Lowers the priority of this thread only, because transfers come first. A refusal does no harm.
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNice));
  Lock lock(mutex_);
  while (!over_) {
    if (queue_.empty()) {
      work_.wait(lock);
      continue;
    }
    const auto [due, id] = queue_.top();
    if (due > Clock::now()) {
      work_.wait_until(lock, due);
      continue;
    }
    queue_.pop();
    const auto range = ranges_.find(id);
    if (range == ranges_.end()) continue;
    if (const auto next = advance(lock, id, range->second)) queue_.emplace(*next, id);
  }
}

// Populates the range's next step, and returns the time of the one after it. Nothing: no steps are
// left.
std::optional<Clock::time_point> Populator::advance(Lock& lock, RangeId id, Range& range) {
  while (range.next < range.done.size() && range.done[range.next]) ++range.next;
  if (range.next == range.done.size()) return endPass(range);
  const std::size_t index = range.next++;
  const auto rest = range.memory.subspan(index * kStep);
  const auto step = rest.first(std::min(rest.size(), kStep));
  const bool look = until_look_ == 0;
  const std::uint64_t soon = populated_ + kStepsBetweenLooks * kStep;
  until_look_ = (look ? kStepsBetweenLooks : until_look_) - 1;

  stepping_ = id;
  lock.unlock();
  auto outcome = StepResult::kStop;
  if (!look || mayPopulate(soon, free_memory_()))
    outcome = range.pages == Pages::kAll ? populateAll(step) : populateResident(step);
  lock.lock();
  stepping_ = 0;
  stepped_.notify_all();

  if (outcome == StepResult::kStop) {
    until_look_ = 0;
    return std::nullopt;
  }
  if (outcome == StepResult::kDone) {
    range.done[index] = range.progress = true;
    range.populated += step.size();
    populated_ += step.size();
  }
  return Clock::now();
}

std::optional<Clock::time_point> Populator::endPass(Range& range) {
  if (std::ranges::count(range.done, false) == 0) return std::nullopt;
  range.pause = range.progress ? kFirstPause : 2 * range.pause;
  if (range.pause > kLastPause) return std::nullopt;
  range.next = 0;
  range.progress = false;
  return Clock::now() + range.pause;
}

}  // namespace viaduct::local
