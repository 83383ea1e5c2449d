#include "agent/faults/fault_source.h"

#include <algorithm>
#include <variant>

#include "base/random.h"

namespace viaduct::agent {
namespace {

// The random numbers of one op under one rule.
base::Random randomOf(std::uint64_t seed, std::size_t rule, std::uint64_t number) {
  const std::uint64_t mixed = base::Random(seed + rule).next();
  return base::Random(mixed + number);
}

}  // namespace

FaultSource::FaultSource(core::FaultPlan plan, base::Poller& clock)
    : plan_(std::move(plan)),
      clock_(clock),
      opened_(clock.now()),
      is_over_(plan_.rules.size(), false) {}

bool FaultSource::corrupts() const {
  return std::ranges::any_of(
      plan_.rules, [](const core::FaultRule& rule) { return rule.kind == FaultKind::kCorrupt; });
}

bool FaultSource::hitsOp(std::size_t index, std::uint64_t number) const {
  return plan_.rules[index].kind != FaultKind::kLateLease && hits(index, number);
}

bool FaultSource::hits(std::size_t index, std::uint64_t number) const {
  const core::FaultWhen& when = plan_.rules[index].when;
  if (const auto* chance = std::get_if<core::Chance>(&when))
    return randomOf(plan_.seed, index, number).chance(chance->of);
  if (const auto* op = std::get_if<core::OpNumber>(&when)) return op->number == number;
  return !is_over_[index] && clock_.now() - opened_ >= std::get<core::After>(when).time;
}

std::size_t FaultSource::spared(std::size_t most) const {
  for (std::size_t i = 0; i < most; ++i)
    for (std::size_t rule = 0; rule < plan_.rules.size(); ++rule)
      if (hitsOp(rule, next_ + i)) return i;
  return most;
}

void FaultSource::apply(std::size_t index, OpFaults& to) {
  const core::FaultRule& rule = plan_.rules[index];
  switch (rule.kind) {
    case FaultKind::kDelay:
      to.delay = std::max(to.delay, rule.time.value_or(Duration(0)));
      break;
    case FaultKind::kStop:
      to.stop = true;
      break;
    case FaultKind::kCorrupt:
      to.corrupt = true;
      break;
    case FaultKind::kDropRail:
      to.drop_rail = rule.time.value_or(Duration::max());
      break;
    case FaultKind::kKillPeer:
      to.kill_peer = true;
      break;
    case FaultKind::kLateLease:
      break;  // takeLease() handles it
  }
  if (std::holds_alternative<core::After>(rule.when)) is_over_[index] = true;
}

OpFaults FaultSource::take() {
  OpFaults out;
  for (std::size_t rule = 0; rule < plan_.rules.size(); ++rule)
    if (hitsOp(rule, next_)) apply(rule, out);
  ++next_;
  return out;
}

std::optional<Duration> FaultSource::takeLease() {
  const std::uint64_t number = next_lease_++;
  std::optional<Duration> out;
  for (std::size_t index = 0; index < plan_.rules.size(); ++index) {
    const core::FaultRule& rule = plan_.rules[index];
    if (rule.kind != FaultKind::kLateLease || !hits(index, number)) continue;
    out = std::min(out.value_or(Duration::max()), rule.time.value_or(Duration(0)));
    if (std::holds_alternative<core::After>(rule.when)) is_over_[index] = true;
  }
  if (out) count(FaultKind::kLateLease);
  return out;
}

std::uint64_t FaultSource::below(std::uint64_t bound) const {
  return randomOf(plan_.seed, plan_.rules.size(), next_).below(bound);
}

std::optional<std::size_t> FaultSource::takeScratch() {
  if (!scratch_slot_) return std::nullopt;
  auto* const free = std::ranges::find(scratch_used_, false);
  if (free == scratch_used_.end()) return std::nullopt;
  *free = true;
  return static_cast<std::size_t>(free - scratch_used_.begin());
}

}  // namespace viaduct::agent
