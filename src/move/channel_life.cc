#include "move/channel_life.h"

#include <algorithm>
#include <utility>

namespace viaduct::move {

bool ChannelLife::on(ChannelEvent event) {
  using enum ChannelSteps::State;
  using enum ChannelSteps::Event;
  const auto next = base::Machine<ChannelSteps>::after(state_, event);
  if (!next) return false;
  if (event == kOpen) was_renewed_ = state_ == kRenewing;
  state_ = *next;
  if (state_ == kUp) up_since_ = Clock::now();
  if (state_ == kUp || state_ == kClosing || event == kOpenFailed) decided_ = true;
  if (state_ == kResting) {
    const auto since = std::exchange(up_since_, std::nullopt);
    breaks_ = since && Clock::now() - *since >= rule_.worked ? 1 : breaks_ + 1;
  }
  if (atRest()) ++number_;
  return true;
}

Duration ChannelLife::wait() const {
  constexpr int kEnough = 10;
  return std::min(rule_.last, rule_.first * (1 << std::clamp(breaks_ - 1, 0, kEnough)));
}

}  // namespace viaduct::move
