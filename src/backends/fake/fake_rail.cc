#include "backends/fake/fake_rail.h"

#include <algorithm>
#include <utility>

namespace viaduct::fake {

std::size_t FakeRail::post(const core::Work& work) {
  const std::size_t taken = std::min(kRoom - queue_.size(), work.ops.size());
  const auto now = Clock::now();
  for (std::size_t i = 0; i < taken; ++i) {
    const auto late = dice_.below(static_cast<std::uint64_t>(weather_.delay.count()) + 1);
    queue_.push_back({work, i, now + std::chrono::microseconds(late), false});
    if (queue_.size() > 1 && dice_.chance(weather_.reorder))
      std::swap(queue_.back(), queue_[queue_.size() - 2]);
  }
  return taken;
}

void FakeRail::poll(core::Completions& out) {
  const auto now = Clock::now();
  for (std::size_t left = queue_.size(); left > 0; --left) {
    Ride ride = queue_.front();
    queue_.pop_front();
    if (!ride.cancelled && ride.ready > now) {
      queue_.push_back(ride);
      continue;
    }
    if (auto done = finish(ride); done)
      out.emplace_back(core::Moved{ride.work.tag, 1, ride.work.ops[ride.op].bytes});
    else
      out.emplace_back(core::Failed{ride.work.tag, 1, std::move(done).error()});
  }
}

Status FakeRail::finish(const Ride& ride) {
  const auto failure = [&](Code code, std::string detail) {
    return Error{.code = code,
                 .operation = opKindName(ride.work.kind),
                 .detail = std::move(detail),
                 .device = name_};
  };
  if (ride.cancelled) return failure(Code::kCancelled, "");
  if (dice_.chance(weather_.lose_rail)) return failure(Code::kDevice, "the rail broke");
  if (dice_.chance(weather_.kill_peer)) kill_(*ride.work.link);
  if (ride.work.link->state().phase != core::LinkState::Phase::kReady)
    return failure(Code::kPeerLost, "the peer died");
  return carry_(*ride.work.link, ride.work.ops[ride.op], ride.work.kind);
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
