#include "move/rail_runner.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace viaduct::move {
namespace {

Error cancelledError() {
  return {.code = Code::kCancelled, .operation = "transfer", .detail = "cancelled"};
}

}  // namespace

// The thread that has the right drops it after one poll. That is soon, unless the system has
// preempted the thread.
void RailRunner::Right::take() {
  constexpr int kYields = 100;
  constexpr std::chrono::microseconds kPause{20};
  assert(!isMine() && "the thread that runs a rail waits for itself");
  for (int looks = 0; !tryTake(); ++looks)
    if (looks < kYields)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
}

void RailRunner::post(const core::Work& work) {
  if (left_ != 0 || !right_.tryTake()) {
    leave(work);
    return runLeft();
  }
  give(work);
  publish();
  right_.drop();
  // Another thread, or the rail, may have left work meanwhile.
  if (left_ != 0) runLeft();
}

// False: the rail has no room, and the inbox has the rest.
bool RailRunner::give(const core::Work& work) {
  std::size_t took = 0;
  if (rail_ != nullptr) {
    took = rail_->post(work);
    rail_->collect(some_);
  }
  if (took == work.ops.size()) return true;
  core::Work rest = work;
  rest.ops = rest.ops.subspan(took);
  if (putBack(rest)) return false;
  some_.emplace_back(core::Failed{rest.slice, rest.ops.size(), cancelledError()});
  return true;
}

// Leaves the work in the inbox. `wanted` makes the thread that has the right leave its poll soon.
void RailRunner::leave(const core::Work& work) {
  const base::Lock lock(inbox_lock_);
  inbox_[static_cast<std::size_t>(work.priority)].push(work);
  count();
  if (rail_ != nullptr) rail_->wanted = true;
}

unsigned RailRunner::waiting() const {
  unsigned out = 0;
  for (std::size_t i = 0; i < kPriorities; ++i)
    out |= static_cast<unsigned>(!inbox_[i].empty()) << i;
  return out;
}

void RailRunner::count() {
  std::size_t left = cancelled_.size();
  for (const WorkQueue& one : inbox_) left += one.works.size() - one.next;
  left_ = left;
}

// A thread that leaves work and then does not get the right may rely on the thread that has it:
// that one drops the right and then looks for work. These four operations are sequentially
// consistent.
void RailRunner::runLeft() {
  while (left_ != 0 && right_.tryTake()) {
    const bool all = handOver();
    publish();
    right_.drop();
    if (!all) return;
  }
}

// Gives the inbox to the rail. False: the rail has no room for more. A rail that has refused a work
// may still have room for one of a higher priority.
bool RailRunner::handOver() {
  constexpr unsigned kAll = (1U << kPriorities) - 1;
  unsigned classes = kAll;
  core::Work work;
  while (left_ != 0) {
    cancelLeft();
    while (takeNext(work, classes))
      if (!give(work)) classes &= (1U << static_cast<unsigned>(work.priority)) - 1;
    if (classes != kAll) return false;
  }
  return true;
}

// Sinks that were cancelled meanwhile come first, since the inbox may have later works of them.
bool RailRunner::takeNext(core::Work& out, unsigned classes) {
  const base::Lock lock(inbox_lock_);
  const unsigned waits = waiting() & classes;
  if (waits == 0 || !cancelled_.empty()) return false;
  out = inbox_[shares_.next(waits)].pop();
  std::uint64_t bytes = 0;
  for (const core::Op& op : out.ops) bytes += op.bytes;
  shares_.served(out.priority, bytes, waiting());
  count();
  return true;
}

// False: the work was cancelled meanwhile.
bool RailRunner::putBack(const core::Work& rest) {
  const base::Lock lock(inbox_lock_);
  if (std::ranges::find(cancelled_, rest.slice.sink) != cancelled_.end()) return false;
  inbox_[static_cast<std::size_t>(rest.priority)].putBack(rest);
  count();
  return true;
}

void RailRunner::cancelLeft() {
  const auto sinks = [this] {
    const base::Lock lock(inbox_lock_);
    auto all = std::exchange(cancelled_, {});
    count();
    return all;
  }();
  for (const core::Sink* const sink : sinks)
    if (rail_ != nullptr) rail_->cancel(*sink);
}

// Takes the matching works out of the inbox. They come back as failed.
template <class Such>
void RailRunner::takeOut(Such such, const Error& why, core::Completions& out) {
  for (WorkQueue& queue : inbox_) {
    const auto first = queue.works.begin() + static_cast<std::ptrdiff_t>(queue.next);
    const auto end =
        std::stable_partition(first, queue.works.end(), [&](auto& one) { return !such(one); });
    for (auto one = end; one != queue.works.end(); ++one)
      out.emplace_back(core::Failed{one->slice, one->ops.size(), why});
    queue.works.erase(end, queue.works.end());
  }
  count();
}

void RailRunner::cancel(const core::Sink& sink) {
  core::Completions ended;
  {
    const base::Lock lock(inbox_lock_);
    takeOut([&](const core::Work& work) { return work.slice.sink == &sink; }, cancelledError(),
            ended);
    cancelled_.push_back(&sink);
    count();
  }
  tell(ended);
  runLeft();
}

bool RailRunner::run() {
  if (!right_.tryTake()) return false;
  if (rail_ != nullptr) {
    rail_->wanted.store(false, std::memory_order_relaxed);
    if (left_ != 0) handOver();
    rail_->poll(some_);
  }
  publish();
  right_.drop();
  if (left_ != 0) runLeft();
  return true;
}

// Ends a turn with the rail: leaves ended ops and news of events for the agent.
void RailRunner::publish() {
  if (!some_.empty()) tell(some_);
  const bool busy = rail_ != nullptr && rail_->busy();
  busy_.store(busy, std::memory_order_relaxed);
  if (busy && rail_->hasEvents()) news_.events = true;
}

void RailRunner::tell(core::Completions& some) {
  if (some.empty()) return;
  {
    const base::Lock lock(ended_lock_);
    std::ranges::move(some, std::back_inserter(ended_));
  }
  some.clear();
  news_.ended = true;
}

void RailRunner::takeEnded(core::Completions& out) {
  const base::Lock lock(ended_lock_);
  std::ranges::move(ended_, std::back_inserter(out));
  ended_.clear();
}

void RailRunner::stop() VIADUCT_UNCHECKED {
  if (!alone_) return;
  if (rail_ != nullptr) rail_->wanted = true;
  right_.take();
}

void RailRunner::start() VIADUCT_UNCHECKED {
  if (!alone_) return;
  publish();
  right_.drop();
  runLeft();
}

// If the rail runs alone, stop() has given this thread the right to run it. Otherwise the right is
// free, unless this thread is inside a call of the rail.
void RailRunner::handleEvents() VIADUCT_UNCHECKED {
  if (rail_ == nullptr || !rail_->hasEvents() || (!alone_ && !right_.tryTake())) return;
  rail_->handleEvents(some_);
  tell(some_);
  if (alone_) return;
  publish();
  right_.drop();
  runLeft();
}

void RailRunner::giveBack(const core::Link& link, core::Completions& out) {
  const base::Lock lock(inbox_lock_);
  takeOut([&](const core::Work& work) { return work.link == &link; },
          {.code = Code::kPeerLost, .operation = "transfer", .detail = "the link is closed"}, out);
}

}  // namespace viaduct::move
