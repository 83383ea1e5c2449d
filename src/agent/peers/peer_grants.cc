// PeerImpl: what the peer's card grants it here. docs/design/0065-cards-that-grant.md
#include <algorithm>
#include <utility>

#include "agent/peers/peer_impl.h"
#include "agent/session/messages.h"
#include "base/log.h"

namespace viaduct::agent {

// Called before the links open, so that they find the rights to all present pins.
void PeerImpl::beginRights() {
  rights_ = std::make_shared<core::PinRights>(session_number_, !grants_.empty());
  for (const PinEntry& entry : basis_.pins().slots())
    if (entry.generation != 0) grant(entry);
  if (!grants_.empty())
    base::log(base::LogLevel::kInfo, "peer {}: its Card grants {}", name_, textOf(grants_));
  endInTime();
}

void PeerImpl::grant(const PinEntry& pin) {
  if (rights_->isLimited()) rights_->grant(pin.info.slot, rightTo(pin.info.label, grants_));
}

// Called while rails are stopped. The slot may have belonged to another pin before.
void PeerImpl::announce(const PinEntry& pin) {
  if (!isAlive()) return;
  grant(pin);
  tellPin(pin);
}

// Announces the pin as far as the peer may reach it. A limited peer gets the keys of backends that
// take its rights back when the session ends.
void PeerImpl::tellPin(const PinEntry& pin) {
  if (!rights_->to(pin.info.slot, pin.audience).any()) return;
  PinMessage message = basis_.pins().message(pin);
  if (rights_->isLimited() && pin.audience.isEverybody()) {
    if (!limit(message.info, grants_)) return;
    std::erase_if(message.keys, [this](const BackendBlob& key) {
      return !basis_.backends().checksRights(key.backend);
    });
  }
  sendOrLose(FrameType::kPin, base::encode(message));
}

// A connection under a card with a grant takes the place of a session only if both have the card of
// one export, so that no holder takes the name of another one.
bool PeerImpl::mayReplace(std::span<const Grant> grants) const {
  return grants.empty() || (!grants_.empty() && grants_.front().id == grants.front().id);
}

// The system's clock may be set meanwhile, so the timer checks the end again.
void PeerImpl::endInTime() {
  basis_.engine().poller().forgetTimer(std::exchange(end_timer_, 0));
  const auto end = isAlive() ? endOf(grants_) : std::nullopt;
  if (!end) return;
  const auto left = *end - basis_.wallNow();
  constexpr auto kLongest = std::chrono::hours(24);
  end_timer_ = basis_.engine().poller().at(
      basis_.now() + std::clamp<Duration>(left, Duration::zero(), kLongest), [this] {
        end_timer_ = 0;
        if (auto may = mayUse(grants_, name_, basis_.wallNow()); !may)
          return endUnderCard(std::move(may).error());
        endInTime();
      });
}

void PeerImpl::endUnderCard(Error why) {
  if (!isAlive()) return;
  const std::string said = why.detail + (why.remedy.empty() ? "" : "; " + why.remedy);
  // A peer that takes no more bytes learns the reason when it dials again.
  static_cast<void>(send(FrameType::kBye, base::encode(ByeMessage{said, Code::kDenied})));
  ending_.step(Ending::kBye);
  why.operation = "session";
  why.peer = name_;
  lose(why);
  changed();
}

// Only a denial has a reason that matters after a goodbye.
void PeerImpl::heardBye(std::span<const std::byte> payload) {
  if (const auto bye = base::decode<ByeMessage>(payload); bye && bye->code == Code::kDenied)
    goodbye_ = Error{.code = Code::kDenied,
                     .operation = "session",
                     .detail = bye->why,
                     .peer = name_,
                     .cause = "the owner's agent has ended the session",
                     .remedy = "get a new Card from its owner"};
  ending_.step(Ending::kBye);
}

}  // namespace viaduct::agent
