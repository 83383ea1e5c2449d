#include "backends/fake/fake_rail.h"

#include <algorithm>
#include <utility>

namespace viaduct::fake {

std::size_t FakeRail::post(const core::Work& work) {
  const std::size_t taken = std::min(kRoom - queue_.size(), work.ops.size());
  const auto now = Clock::now();
  for (std::size_t i = 0; i < taken; ++i) {
    const auto late = dice_.below(static_cast<std::uint64_t>(weather_.delay.count()) + 1);
    queue_.push_back(
        {work, work.ops[i], work.ops[i].bytes, now + std::chrono::microseconds(late), false});
    if (queue_.size() > 1 && dice_.chance(weather_.reorder))
      std::swap(queue_.back(), queue_[queue_.size() - 2]);
  }
  return taken;
}

void FakeRail::poll(core::Completions& out) {
  const auto now = Clock::now();
  std::uint64_t carried = 0;
  for (std::size_t rides = queue_.size(); rides > 0 && carried < 4 * kStep; --rides) {
    Ride ride = queue_.front();
    queue_.pop_front();
    if (!ride.cancelled && ride.ready > now) {
      queue_.push_back(ride);
      continue;
    }
    const std::uint64_t before = ride.left.bytes;
    auto advanced = advance(ride);
    carried += before - ride.left.bytes;
    if (!advanced)
      out.emplace_back(core::Failed{ride.work.tag, 1, std::move(advanced).error()});
    else if (ride.left.bytes == 0)
      out.emplace_back(core::Moved{ride.work.tag, 1, ride.bytes});
    else
      queue_.push_front(ride);
  }
}

Status FakeRail::advance(Ride& ride) {
  const auto failure = [&](Code code, std::string detail) {
    return Error{.code = code,
                 .operation = opKindName(ride.work.kind),
                 .detail = std::move(detail),
                 .device = name_};
  };
  if (ride.cancelled) return failure(Code::kCancelled, "");
  const bool begins = ride.left.bytes == ride.bytes;
  if (begins && dice_.chance(weather_.lose_rail)) return failure(Code::kDevice, "the rail broke");
  if (begins && dice_.chance(weather_.kill_peer)) kill_(*ride.work.link);
  if (ride.work.link->state().phase != core::LinkState::Phase::kReady)
    return failure(Code::kPeerLost, "the peer died");
  core::Op step = ride.left;
  step.bytes = std::min(step.bytes, kStep);
  VIADUCT_CHECK(carry_(*ride.work.link, step, ride.work.kind));
  ride.left.local += step.bytes;
  ride.left.remote += step.bytes;
  ride.left.bytes -= step.bytes;
  return Ok{};
}

void FakeRail::cancel(core::Tag tag) {
  for (Ride& ride : queue_)
    if (ride.work.tag == tag) ride.cancelled = true;
}

void FakeRail::drop(const core::Link& link, core::Completions& out) {
  for (const Ride& ride : queue_)
    if (ride.work.link == &link)
      out.emplace_back(core::Failed{ride.work.tag, 1, {.code = Code::kPeerLost, .device = name_}});
  std::erase_if(queue_, [&](const Ride& ride) { return ride.work.link == &link; });
}

}  // namespace viaduct::fake
