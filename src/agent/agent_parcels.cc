// AgentImpl: parcels that are announced at its meeting place. docs/design/0069-parcels.md
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "agent/agent_impl.h"
#include "agent/peers/peer_impl.h"
#include "meet/wait.h"

namespace viaduct::agent {
namespace {

// The pauses between two looks at an entry that its owner has left behind. A place removes the
// entries of dead processes within seconds.
constexpr Duration kFirstLook = std::chrono::milliseconds(20);
constexpr Duration kLongestLook = std::chrono::milliseconds(500);

Error noLivingOwner(const std::string& parcel, const AnnouncedOwner& owner) {
  return {.code = Code::kTimeout,
          .operation = fmt::format("find parcel {}", parcel),
          .detail = fmt::format("agent {} ({}) has announced it, and is not reachable", owner.agent,
                                cardIdText(owner.id)),
          .cause = "that agent has ended or started again, and its entry is still there",
          .remedy = "publish the parcel again at a living agent"};
}

}  // namespace

Status AgentImpl::mayAnnounce(const std::string& parcel, bool has_other_owner) const {
  VIADUCT_CHECK(placeFor(fmt::format("publish parcel {} at a meeting place", parcel)));
  if (!has_other_owner) return Ok{};
  return Error{.code = Code::kInvalid,
               .operation = fmt::format("publish parcel {}", parcel),
               .detail = "another agent decides about the parcel",
               .remedy = "set at_place at the owner alone"};
}

Status AgentImpl::announce(Publication& publication, const std::string& parcel) {
  {
    const auto held = hold();
    if (publication.retract || publication.end) return Ok{};
    publication.retract = [this, parcel] { finder_->retract(parcel); };
  }
  Status announced = finder_->announce(parcel, settings_.deadline);
  if (announced) return announced;
  const auto held = hold();
  publication.retract = {};
  return announced;
}

Result<AgentImpl::ReadyOwner> AgentImpl::ownerOf(const std::string& parcel, Deadline until) {
  VIADUCT_TRY(const Finder* const finder, placeFor(fmt::format("find parcel {}", parcel)));
  meet::BackOff pause(kFirstLook, kLongestLook);
  std::optional<AnnouncedOwner> owner;
  for (;;) {
    auto found = finder->ownerOf(parcel, until);
    if (!found && found.error().code == Code::kTimeout && owner)
      return noLivingOwner(parcel, *owner);
    VIADUCT_TRY(owner, std::move(found));
    VIADUCT_TRY(auto peer, readyOwner(*owner, until));
    if (peer) return ReadyOwner{std::move(peer), owner->id};
    const auto next = std::min(until.at(), Clock::now() + pause.next());
    meet::sleepUntil(next, [this] { return !closed(); });
    VIADUCT_CHECK(usable("find"));
    if (until.passed()) return noLivingOwner(parcel, *owner);
  }
}

// Null: that agent may have restarted since it wrote the entry, or it cannot be reached now.
Result<std::shared_ptr<PeerImpl>> AgentImpl::readyOwner(const AnnouncedOwner& owner,
                                                        Deadline until) {
  const std::shared_ptr<PeerImpl> none;
  const auto known = [&]() -> Result<std::shared_ptr<PeerImpl>> {
    if (owner.id == id_) return peers_.self();
    auto peer = peers_.find(owner.agent);
    return peer && peer->isOpen() && peer->theirId() == owner.id ? peer : none;
  };
  auto held = hold();
  VIADUCT_CHECK(usable("find"));
  VIADUCT_TRY(auto found, known());
  if (found) return found;
  held.unlock();
  const Deadline soon = std::min(until.at(), Clock::now() + settings_.detect);
  const auto card = finder_->find(owner.agent, soon);
  if (!card && card.error().code != Code::kTimeout) return card.error();
  if (!card || card->agent != owner.id) return none;
  held.lock();
  VIADUCT_CHECK(usable("find"));
  VIADUCT_TRY(const auto peer, peers_.connect(*card));
  engine_->takeOverSoon(now());
  const auto over = [&] { return peer->isOpen() || peer->hopeless() || closed(); };
  engine_->waitHeld(over, soon.at(), &peer->watchers());
  if (peer->hopeless()) return peer->notReady("find parcel");
  return known();
}

}  // namespace viaduct::agent
