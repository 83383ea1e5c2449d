#include "measure/run/ring_gate.h"

#include <algorithm>

namespace viaduct::measure::pipeline {

// Returns the previous chunk in the same place of the ring as `chunk`. Nothing: `chunk` is the
// first one there.
std::optional<std::uint64_t> RingGate::before(std::uint64_t chunk) const {
  const std::uint64_t number = chunk % chunks_, pass = chunk / chunks_;
  if (number >= places_) return chunk - places_;
  if (pass == 0) return std::nullopt;
  const std::uint64_t last = number + (chunks_ - 1 - number) / places_ * places_;
  return (pass - 1) * chunks_ + last;
}

RingGate::Turn RingGate::fillTurn(std::uint64_t end) const {
  if (counts_.broken) return Turn::kBroken;
  const auto old = before(end - 1);
  return !old || counts_.emptied > *old ? Turn::kNow : Turn::kLater;
}

RingGate::Turn RingGate::emptyTurn(std::uint64_t end) const {
  if (counts_.broken) return Turn::kBroken;
  if (counts_.filled >= end) return Turn::kNow;
  return counts_.complete ? Turn::kComplete : Turn::kLater;
}

RingGate::Turn RingGate::await(std::chrono::nanoseconds patience,
                               const std::function<Turn()>& turn) {
  std::unique_lock held(mutex_);
  changed_.wait_for(held, patience, [&] { return turn() != Turn::kLater; });
  return turn();
}

RingGate::Turn RingGate::toFill(std::uint64_t end, std::chrono::nanoseconds patience) {
  return await(patience, [&] { return fillTurn(end); });
}

RingGate::Turn RingGate::toEmpty(std::uint64_t end, std::chrono::nanoseconds patience) {
  return await(patience, [&] { return emptyTurn(end); });
}

void RingGate::change(const std::function<void(RingCounts&)>& how) {
  const std::lock_guard held(mutex_);
  how(counts_);
  if (tell_) told_ = tell_(counts_);
  changed_.notify_all();
}

void RingGate::tellAgain() {
  const std::lock_guard held(mutex_);
  if (!told_) told_ = tell_(counts_);
}

void RingGate::hear(const RingCounts& counts) {
  const std::lock_guard held(mutex_);
  counts_.filled = std::max(counts_.filled, counts.filled);
  counts_.emptied = std::max(counts_.emptied, counts.emptied);
  counts_.complete = counts_.complete || counts.complete;
  counts_.broken = counts_.broken || counts.broken;
  changed_.notify_all();
}

void RingGate::fill(std::uint64_t end) {
  change([&](RingCounts& counts) { counts.filled = end; });
}
void RingGate::empty(std::uint64_t end) {
  change([&](RingCounts& counts) { counts.emptied = end; });
}
void RingGate::complete() {
  change([](RingCounts& counts) { counts.complete = true; });
}
void RingGate::fail() {
  change([](RingCounts& counts) { counts.broken = true; });
}

}  // namespace viaduct::measure::pipeline
