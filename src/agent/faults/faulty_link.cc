#include "agent/faults/faulty_link.h"

#include "base/log.h"

namespace viaduct::agent {

void FaultyLink::kill() {
  if (std::exchange(is_killed_, true)) return;
  base::log(base::LogLevel::kWarning, "VIADUCT_FAULTS: a peer's session is killed");
  host_.changed();
}

core::LinkState FaultyLink::state() const {
  core::LinkState state = inner_->state();
  if (is_killed_)
    return {core::LinkState::Phase::kUnusable, "killed by kill-peer of VIADUCT_FAULTS"};
  if (state.phase == core::LinkState::Phase::kReady) state.text += ", with VIADUCT_FAULTS";
  return state;
}

std::optional<std::string_view> FaultyLink::reaches(OpKind kind, std::uint32_t local_pin,
                                                    std::uint32_t remote_pin) const {
  const auto way = inner_->reaches(kind, local_pin, remote_pin);
  if (!way) return way;
  auto known = ways_.find(*way);
  if (known == ways_.end())
    known = ways_.emplace(*way, std::string(*way) + std::string(kFaultsMark)).first;
  return known->second;
}

bool FaultyLink::servedBy(const core::Rail& rail) const {
  const auto& faulty = static_cast<const FaultyRail&>(rail);
  return !faulty.isDown() && inner_->servedBy(faulty.inner());
}

void FaultyLink::close(core::Completions& out) {
  core::Completions some;
  inner_->close(some);
  for (const auto& rail : rails_) static_cast<FaultyRail&>(*rail).takeBack(some);
  std::ranges::move(some, std::back_inserter(out));
  for (const auto& rail : rails_) static_cast<FaultyRail&>(*rail).drop(*inner_, out);
}

}  // namespace viaduct::agent
