#include "backends/fake/fake_rail.h"

#include <algorithm>
#include <utility>

namespace viaduct::fake {

std::size_t FakeRail::post(const core::Work& work) {
  const std::size_t taken = std::min(kRoom - queue_.size(), work.ops.size());
  for (std::size_t i = 0; i < taken; ++i) {
    queue_.push_back({.work = work, .left = work.ops[i], .bytes = work.ops[i].bytes});
    if (lie_ != Lie::kNone) falsify(queue_.back());
  }
  return taken;
}

void FakeRail::poll(core::Completions& out) {
  if (busy()) pollers.with([](auto& threads) { threads.insert(std::this_thread::get_id()); });
  if (const Interruption interrupt = interruption.with([](auto& one) { return one; });
      interrupt && !interrupt())
    return;
  if (this->out()) return breakDown(out);
  std::uint64_t carried = 0;
  while (!queue_.empty() && carried < 4 * kStep) {
    Ride ride = queue_.front();
    queue_.pop_front();
    const std::uint64_t before = ride.left.bytes;
    auto advanced = advance(ride);
    carried += before - ride.left.bytes;
    if (!advanced)
      out.emplace_back(core::Failed{ride.work.slice, 1, std::move(advanced).error()});
    else if (ride.left.bytes == 0)
      out.emplace_back(core::Moved{ride.work.slice, 1, ride.bytes});
    else
      queue_.push_front(ride);
  }
}

Error FakeRail::failure(const Ride& ride, Code code, std::string detail) const {
  return {.code = code,
          .operation = opKindName(ride.work.kind),
          .detail = std::move(detail),
          .device = name_};
}

core::DirectMover::Outcome FakeRail::moveNow(const core::Work&, Progress& so_far,
                                             const std::atomic<bool>& pause) {
  return direct_move.with([](auto& move) { return move; })(so_far, pause);
}

// All ops of a broken rail fail, and half-copied ops stay half-copied.
void FakeRail::breakDown(core::Completions& out) {
  for (const Ride& ride : queue_)
    if (ride.cancelled)
      out.emplace_back(core::Failed{ride.work.slice, 1, failure(ride, Code::kCancelled, "")});
    else
      out.emplace_back(
          core::Failed{ride.work.slice, 1, failure(ride, Code::kDevice, "the rail broke"), true});
  queue_.clear();
}

Status FakeRail::advance(Ride& ride) {
  if (ride.cancelled) return failure(ride, Code::kCancelled, "");
  core::Op step = ride.left;
  step.bytes = std::min(step.bytes, kStep);
  VIADUCT_CHECK(carry_(*ride.work.link, step, ride.work.kind));
  ride.left.local += step.bytes;
  ride.left.remote += step.bytes;
  ride.left.bytes -= step.bytes;
  if (ride.left.bytes == 0) ride.left = std::exchange(ride.after, core::Op{});
  return Ok{};
}

// Changes the copy of the op, but not its completion.
void FakeRail::falsify(Ride& ride) const {
  constexpr std::uint64_t kWord = 8;
  const core::Op whole = ride.left;
  const std::uint64_t half = whole.bytes / 2 / kWord * kWord;
  if (half == 0) return;
  const auto part = [&](std::uint64_t from, std::uint64_t into, std::uint64_t bytes) {
    core::Op op = whole;
    const bool writes = ride.work.kind == OpKind::kWrite;
    op.local += writes ? from : into;
    op.remote += writes ? into : from;
    op.bytes = bytes;
    return op;
  };
  if (lie_ == Lie::kStale) {
    ride.left.bytes = 0;
  } else if (lie_ == Lie::kShift) {
    ride.left = part(kWord, 0, whole.bytes - kWord);
  } else if (lie_ == Lie::kSwap) {
    ride.left = part(half, 0, half);
    ride.after = part(0, half, half);
  } else {
    ride.after = part(0, half, kWord);
  }
}

void FakeRail::cancel(const core::Sink& sink) {
  for (Ride& ride : queue_)
    if (ride.work.slice.sink == &sink) ride.cancelled = true;
}

void FakeRail::drop(const core::Link& link, core::Completions& out) {
  for (const Ride& ride : queue_)
    if (ride.work.link == &link)
      out.emplace_back(
          core::Failed{ride.work.slice, 1, {.code = Code::kPeerLost, .device = name_}});
  std::erase_if(queue_, [&](const Ride& ride) { return ride.work.link == &link; });
}

}  // namespace viaduct::fake
