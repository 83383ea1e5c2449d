#include "move/channel_life.h"

#include <algorithm>
#include <array>
#include <utility>

namespace viaduct::move {
namespace {

using enum ChannelState;
using enum ChannelEvent;

constexpr std::string_view kLater = "found in the midst of a poll, which then tells the link";
constexpr std::string_view kTold = "the peer is told, and closes its end";
constexpr std::string_view kUnbegun = "the peer has ended a life that did not begin here";
constexpr std::string_view kWithdrawn = "only a closed end keeps a peer from withdrawn memory";
constexpr std::string_view kOverNow = "no channel outlives its link";

constexpr std::array kSteps{
    ChannelStep{kResting, kOpen, kWaiting, "the dialer's wait is over, or the peer has dialed"},
    ChannelStep{kRenewing, kOpen, kWaiting, "a fence is no fault of the path"},
    ChannelStep{kWaiting, kOpenFailed, kResting, "a device that does not open may come back"},
    ChannelStep{kWaiting, kJoin, kProbing, "no library reports a path that does not work"},
    ChannelStep{kWaiting, kProve, kUp, "the greeting of a socket proves its path"},
    ChannelStep{kProbing, kProve, kUp, "a first write has come back"},
    ChannelStep{kWaiting, kBreak, kBroken, kLater},
    ChannelStep{kProbing, kBreak, kBroken, kLater},
    ChannelStep{kUp, kBreak, kBroken, kLater},
    ChannelStep{kResting, kClose, kClosing, kUnbegun},
    ChannelStep{kRenewing, kClose, kClosing, kUnbegun},
    ChannelStep{kWaiting, kClose, kClosing, kTold},
    ChannelStep{kProbing, kClose, kClosing, kTold},
    ChannelStep{kUp, kClose, kClosing, kTold},
    ChannelStep{kBroken, kClose, kClosing, kTold},
    ChannelStep{kWaiting, kFence, kFencing, kWithdrawn},
    ChannelStep{kProbing, kFence, kFencing, kWithdrawn},
    ChannelStep{kUp, kFence, kFencing, kWithdrawn},
    ChannelStep{kBroken, kFence, kFencing, kWithdrawn},
    ChannelStep{kClosing, kPeerClosed, kResting, "neither end touches memory for this life"},
    ChannelStep{kClosing, kPeerFenced, kRenewing, "the peer's fence was seen here as a break"},
    ChannelStep{kFencing, kPeerClosed, kRenewing, "the peer has followed the fence"},
    ChannelStep{kFencing, kPeerFenced, kRenewing, "both ends have withdrawn memory"},
    ChannelStep{kResting, kEnd, kOver, kOverNow},
    ChannelStep{kRenewing, kEnd, kOver, kOverNow},
    ChannelStep{kWaiting, kEnd, kOver, kOverNow},
    ChannelStep{kProbing, kEnd, kOver, kOverNow},
    ChannelStep{kUp, kEnd, kOver, kOverNow},
    ChannelStep{kBroken, kEnd, kOver, kOverNow},
    ChannelStep{kClosing, kEnd, kOver, kOverNow},
    ChannelStep{kFencing, kEnd, kOver, kOverNow},
};

}  // namespace

std::span<const ChannelStep> channelSteps() { return kSteps; }

bool ChannelLife::on(ChannelEvent event) {
  const auto* const step = std::find_if(kSteps.begin(), kSteps.end(), [&](const ChannelStep& one) {
    return one.from == state_ && one.event == event;
  });
  if (step == kSteps.end()) return false;
  state_ = step->to;
  if (event == kOpen) was_renewed_ = step->from == kRenewing;
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
