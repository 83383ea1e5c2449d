// AgentImpl: its peers, and the heartbeats to them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/agent_impl.h"
#include "agent/peer_impl.h"
#include "base/log.h"
#include "base/net/address.h"

namespace viaduct::agent {
namespace {

// The most peers that are kept after they have departed and no handle refers to them, and the most
// bytes of their marks. Beyond that, the oldest are forgotten.
constexpr std::size_t kMostDeparted = 256;
constexpr std::size_t kMostDepartedBytes = std::size_t{4} << 20U;

}  // namespace

std::shared_ptr<PeerImpl> AgentImpl::findPeer(std::string_view name) const {
  return self_ && name == settings_.name ? self_ : findOther(name);
}

// Never the agent itself: another agent may have its name.
std::shared_ptr<PeerImpl> AgentImpl::findOther(std::string_view name) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const auto& peer) {
    return peer->name() == name && !peer->isOwn();
  });
  return found == peers_.end() ? nullptr : *found;
}

Result<std::shared_ptr<PeerImpl>> AgentImpl::connect(const Card& card) {
  if (card.name.empty())
    return Error{.code = Code::kInvalid, .operation = "connect", .detail = "the Card has no name"};
  if (card.agent == id_) return self();
  auto peer = findOther(card.name);
  if (!peer) peer = peers_.emplace_back(std::make_shared<PeerImpl>(shared(), card.name));
  peer->redialer().aim(card);
  return peer;
}

Result<std::shared_ptr<PeerImpl>> AgentImpl::self() {
  if (!self_)
    self_ = peers_.emplace_back(std::make_shared<PeerImpl>(shared(), settings_.name, /*own=*/true));
  VIADUCT_CHECK(self_->beginOwn());
  return self_;
}

Result<std::shared_ptr<PeerImpl>> AgentImpl::connectTo(std::string_view host_port) {
  if (auto parsed = base::parseHostPort(host_port); !parsed) return std::move(parsed).error();
  auto peer = peers_.emplace_back(std::make_shared<PeerImpl>(shared(), ""));
  peer->redialer().aim({.addresses = {std::string(host_port)}, .secret = secret_});
  return peer;
}

void AgentImpl::accept(base::Fd socket, base::Unproven::Place place) {
  auto& session = newcomers_.emplace_back(std::make_unique<Session>(*this, nullptr));
  if (auto opened = session->open(std::move(socket), secret_, 0); !opened) {
    base::log(base::LogLevel::kWarning, "a connection was dropped: {}", opened.error().text());
    newcomers_.pop_back();
    return;
  }
  session->unproven(std::move(place));
}

std::unique_ptr<Session> AgentImpl::takeNewcomer(Session& session) {
  const auto found = std::find_if(newcomers_.begin(), newcomers_.end(),
                                  [&](const auto& owned) { return owned.get() == &session; });
  if (found == newcomers_.end()) return nullptr;
  auto taken = std::move(*found);
  newcomers_.erase(found);
  taken->leavePlace();
  return taken;
}

void AgentImpl::bury(std::unique_ptr<Session> session) {
  if (!session) return;
  session->orphan();
  graveyard_.push_back(std::move(session));
}

Result<Life> AgentImpl::admit(Session& session, const Hello& theirs) {
  auto peer = findOther(theirs.name);
  if (!peer) peer = peers_.emplace_back(std::make_shared<PeerImpl>(shared(), theirs.name));
  return session.connection().resume() ? peer->judgeResume(session, theirs)
                                       : peer->judgeAccepted(session, theirs);
}

void AgentImpl::joinByName(const std::shared_ptr<PeerImpl>& peer) {
  for (const auto& known : peers_)
    if (known != peer && !known->isOwn() && known->name() == peer->name() &&
        known->state() == PeerState::kReady)
      return replace(peer, known);
  std::erase_if(peers_, [&](const auto& known) {
    if (known == peer || known->isOwn() || known->name() != peer->name()) return false;
    peer->takeKeptNotes(*known);
    known->forget();
    peer->takeUnsettled(*known);
    known->same_as = peer;
    return true;
  });
}

void AgentImpl::replace(const std::shared_ptr<PeerImpl>& peer, std::shared_ptr<PeerImpl> known) {
  known->takeKeptNotes(*peer);
  std::erase(peers_, peer);
  peer->same_as = std::move(known);
  goOnReaching();
}

void AgentImpl::forgetDeparted() {
  const auto departed = [](const auto& peer) { return peer.use_count() == 1 && peer->departed(); };
  std::size_t count = 0, bytes = 0;
  for (const auto& peer : peers_) {
    if (!departed(peer)) continue;
    ++count;
    bytes += peer->earlyMarkBytes();
  }
  std::erase_if(peers_, [&](const auto& peer) {
    if ((count <= kMostDeparted && bytes <= kMostDepartedBytes) || !departed(peer)) return false;
    --count;
    bytes -= peer->earlyMarkBytes();
    return true;
  });
}

void AgentImpl::beatSooner(Duration every) {
  every = std::max<Duration>(every, std::chrono::milliseconds(5));
  if (beat_timer_ != 0 && beat_every_ <= every) return;
  beat_every_ = every;
  const auto now = this->now();
  if (beat_timer_ == 0) last_beat_ = now;
  scheduleBeat(now);
}

void AgentImpl::scheduleBeat(Clock::time_point now) {
  engine_->poller().forgetTimer(beat_timer_);
  beat_timer_ = engine_->poller().at(now + beat_every_, [this] { beat(); });
}

void AgentImpl::beat() {
  const auto now = this->now();
  // After a gap, this process itself was stopped. Frames that peers sent meanwhile have to be read
  // before peers are judged.
  const bool gap = now - last_beat_ > 2 * beat_every_;
  last_beat_ = now;
  forgetDeparted();
  Duration every = settings_.detect / 4;
  const auto peers = peers_;
  for (const auto& peer : peers) {
    peer->beat(now, !gap && !peer->readingPaused());
    every = std::min(every, peer->beatEvery());
  }
  beat_every_ = std::max<Duration>(every, std::chrono::milliseconds(5));
  scheduleBeat(now);
}

}  // namespace viaduct::agent
