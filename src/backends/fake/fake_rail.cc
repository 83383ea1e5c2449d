#include "backends/fake/fake_rail.h"

#include <algorithm>
#include <utility>

namespace viaduct::fake {

namespace {
constexpr auto kRepair = std::chrono::milliseconds(2);
}  // namespace

std::size_t FakeRail::post(const core::Work& work) {
  const std::size_t taken = std::min(kRoom - queue_.size(), work.ops.size());
  const auto now = clock_.now();
  for (std::size_t i = 0; i < taken; ++i) {
    const auto late = dice_.below(static_cast<std::uint64_t>(weather_.delay.count()) + 1);
    queue_.push_back({.work = work,
                      .left = work.ops[i],
                      .bytes = work.ops[i].bytes,
                      .ready = now + std::chrono::microseconds(late)});
    queue_.back().hangs = dice_.chance(weather_.hang);
    harm(queue_.back());
    if (queue_.size() > 1 && dice_.chance(weather_.reorder))
      std::swap(queue_.back(), queue_[queue_.size() - 2]);
  }
  return taken;
}

void FakeRail::poll(core::Completions& out) {
  if (busy()) pollers.with([](auto& threads) { threads.insert(std::this_thread::get_id()); });
  if (const Interruption interrupt = interruption.with([](auto& one) { return one; });
      interrupt && !interrupt())
    return;
  const auto now = clock_.now();
  std::uint64_t carried = 0;
  for (std::size_t rides = queue_.size(); rides > 0 && carried < 4 * kStep; --rides) {
    Ride ride = queue_.front();
    queue_.pop_front();
    if (ride.hangs || (!ride.cancelled && ride.ready > now)) {
      queue_.push_back(ride);
      continue;
    }
    if (breaks(ride)) {
      queue_.push_front(ride);
      return breakDown(out);
    }
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

bool FakeRail::breaks(Ride& ride) {
  if (out()) return true;
  return !ride.cancelled && !ride.begun && dice_.chance(weather_.lose_rail);
}

core::DirectMover::Outcome FakeRail::moveNow(const core::Work&, Progress& so_far,
                                             const std::atomic<bool>& pause) {
  return direct_move.with([](auto& move) { return move; })(so_far, pause);
}

// Breaks the rail for kRepair. All its ops fail, and half-copied ops stay half-copied.
void FakeRail::breakDown(core::Completions& out) {
  out_until_ = clock_.now() + kRepair;
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
  const bool begins = !std::exchange(ride.begun, true);
  if (begins && dice_.chance(weather_.kill_peer)) kill_(*ride.work.link);
  if (ride.work.link->state().phase != core::LinkState::Phase::kReady)
    return failure(ride, Code::kPeerLost, "the peer died");
  core::Op step = ride.left;
  step.bytes = std::min(step.bytes, kStep);
  VIADUCT_CHECK(carry_(*ride.work.link, step, ride.work.kind));
  ride.left.local += step.bytes;
  ride.left.remote += step.bytes;
  ride.left.bytes -= step.bytes;
  if (ride.left.bytes == 0) ride.left = std::exchange(ride.after, core::Op{});
  return Ok{};
}

// Injects harm: changes the copy of the op, but not its completion.
void FakeRail::harm(Ride& ride) {
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
  if (dice_.chance(weather_.stale)) {
    ride.left.bytes = 0;
  } else if (dice_.chance(weather_.shift)) {
    ride.left = part(kWord, 0, whole.bytes - kWord);
  } else if (dice_.chance(weather_.swap)) {
    ride.left = part(half, 0, half);
    ride.after = part(0, half, half);
  } else if (dice_.chance(weather_.corrupt)) {
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
