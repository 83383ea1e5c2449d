// PeerImpl: how the lives of a peer's session begin and end.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/peers/peer_impl.h"
#include "agent/session/messages.h"
#include "base/log.h"

namespace viaduct::agent {

using base::log;
using base::LogLevel;

Result<Life> PeerImpl::judgeDialed(Session& session, const Hello& theirs) {
  if (session_ && session_->connection().theirs().agent != theirs.agent)
    return Error{
        .code = Code::kPeerLost, .operation = "resume", .detail = "another agent answered"};
  if (!name_.empty() && theirs.name != name_)
    return Error{.code = Code::kNotFound,
                 .operation = "connect",
                 .detail = fmt::format("the agent at {} is called {}, not {}",
                                       session.connection().remoteText(), theirs.name, name_),
                 .peer = name_,
                 .cause = "another agent has taken the address",
                 .remedy = "get a new Card from the intended agent"};
  if (!session_ && !session.connection().isUnix() && basis_.isThisHost(theirs.boot) &&
      redialer_.upgrade(theirs.unix_name))
    return Error{.code = Code::kBusy, .operation = "connect", .detail = "same host: Unix socket"};
  if (!session_ && peers_.drains()) return peers_.drainError("connect");
  // The peer is this process, as the kernel proves: another process may claim this agent's id.
  if (theirs.agent == basis_.id() && session.connection().peerPid() == ::getpid()) {
    VIADUCT_TRY(const auto self, peers_.self());
    peers_.replace(shared_from_this(), self);
  } else if (name_.empty()) {
    name_ = theirs.name;
    peers_.joinByName(shared_from_this(), theirs.agent);
  }
  if (same_as) {
    redialer_.forget();
    changed();
    return Error{.code = Code::kBusy, .operation = "connect", .detail = "already connected"};
  }
  return Life{.epoch = epoch_};
}

// If two ends dial each other at once, the end with the smaller id keeps the connection that it
// dialed. The other end's hello may arrive after that session has begun. It is late if it names an
// earlier epoch.
Result<Life> PeerImpl::judgeAccepted(Session& session, const Hello& theirs,
                                     std::vector<Grant> grants) {
  const bool same_life =
      session_ && session_->connection().theirs().agent == theirs.agent && mayReplace(grants);
  const auto now = basis_.now();
  const bool healthy = session_ && now - lastHeard(now) < beatEvery() * 2;
  // A frozen agent that goes on within Settings::detect finds its name free.
  const bool silent = silent_ && now < silent_->until && silent_->agent != theirs.agent;
  if ((session_ && !same_life) || silent)
    return Error{.code = Code::kBusy,
                 .operation = "connect",
                 .detail = fmt::format(
                     "an agent named {} {}", name_,
                     silent ? "fell silent a moment ago and may go on" : "is connected already"),
                 .peer = name_,
                 .cause = "two agents have the same name",
                 .remedy = "give each agent its own Settings::name"};
  const bool late = same_life && healthy && theirs.last_epoch < epoch_;
  if (late || (redialer_.shakesHands() && !session_ && peers_.precedes(theirs)))
    return Error{.code = Code::kBusy,
                 .operation = "connect",
                 .detail = "both ends dialed: this end's connection stays"};
  if (now < refuses_until_)
    return Error{
        .code = Code::kBusy,
        .operation = "connect",
        .detail = fmt::format("agent {} could not keep the last session: {}",
                              basis_.settings().name, last_error_.value_or(Error{}).text()),
        .cause = "it has too few file descriptors or too little memory",
        .remedy = "raise its limits (ulimit -n); this agent retries"};
  if (session_)
    lose({.code = Code::kPeerLost,
          .operation = "session",
          .detail = "the peer has begun a new session",
          .peer = name_});
  redialer_.stop();
  phase_.step(PeerPhase::kAdmit);
  session_ = peers_.takeNewcomer(session);
  grants_ = std::move(grants);
  session.belongsTo(shared_from_this());
  return Life{.epoch = std::max(epoch(), theirs.last_epoch) + 1};
}

void PeerImpl::established(Session& session, std::uint64_t epoch) {
  if (const auto& theirs = session.connection().resume()) return resumed(session, theirs->heard);
  if (auto attempt = redialer_.take(session)) {
    session_ = std::move(attempt);
    grants_ = redialer_.mine();
  }
  redialer_.met(session.connection().theirs());
  life_key_ = session.connection().deriveKey("life");
  silent_.reset();
  begin(epoch);
  peers_.beatSooner(beatEvery());
}

// The links of the agent to itself are ready at once, so its own peer never waits for them.
Status PeerImpl::beginOwn() {
  if (isAlive()) return Ok{};
  begin(epoch_ + 1);
  recheck();
  if (isAlive()) return Ok{};
  return last_error_.value_or(Error{});
}

void PeerImpl::begin(std::uint64_t epoch) {
  phase_.step(PeerPhase::kBegin);
  epoch_ = epoch;
  session_number_ = peers_.newSession();
  features_ = kOurFeatures & (session_ ? session_->connection().theirs().features : kOurFeatures);
  goodbye_.reset();
  paused_ = note_dropped_ = marks_dropped_ = false;
  note_sender_->name = name_;
  marks_.begin();
  own_drain_ = their_drain_ = 0;
  told_left_.reset();
  heard_left_.reset();
  beginRights();
  if (session_ && session_->connection().isUnix()) openRing();
  openLinks();
  // Checked before kSynced is sent, so that the peer does not become ready.
  if (auto why = exhausted()) return breakOff(*std::move(why));
  for (const PinEntry& entry : basis_.pins().slots())
    if (entry.generation != 0) tellPin(entry);
  sendOrLose(FrameType::kSynced, {});
  if (peers_.drains()) announceDrain();
  linkChanged();
}

void PeerImpl::openLinks() {
  const Still still(basis_.rails());
  for (std::size_t i = 0; i < basis_.backends().count(); ++i) {
    core::Backend& backend = basis_.backend(i);
    auto seed = own_ ? ownSeed(backend) : seedFor(backend);
    if (!seed) continue;
    seed->peer = name_;
    seed->rights = rights_;
    seed->epoch = epoch_;
    auto& slot = links_.emplace_back(
        std::make_unique<LinkSlot>(*this, i, backend.rails().size(), basis_.engine().poller()));
    slot->link = backend.link(*std::move(seed), *slot);
  }
}

// A network is no way to the agent's own memory.
std::optional<core::LinkSeed> PeerImpl::ownSeed(const core::Backend& backend) {
  if (!backend.can().own_memory) return std::nullopt;
  return core::LinkSeed{
      .same_process = true, .self = true, .same_host = true, .address = backend.address()};
}

std::optional<core::LinkSeed> PeerImpl::seedFor(core::Backend& backend) const {
  const Connection& connection = session_->connection();
  const Hello& theirs = connection.theirs();
  const auto common = std::ranges::find(theirs.backends, backend.can().name, &BackendBlob::backend);
  if (backend.storage() || common == theirs.backends.end()) return std::nullopt;
  const bool same_process = peers_.isThisProcess(theirs);
  return core::LinkSeed{.dialer = session_->dialed(),
                        .same_process = same_process,
                        .same_host = same_process || connection.isUnix(),
                        .unix_socket = connection.isUnix(),
                        .pid = connection.peerPid(),
                        .address = common->bytes,
                        .key = connection.deriveKey("link:" + common->backend)};
}

// On return no code of this agent touches memory for this life, and its transfers have ended.
void PeerImpl::closeLinks(const Error& why) {
  const Still still(basis_.rails());
  core::Completions ended;
  for (auto& slot : links_) {
    basis_.rails().giveBack(*slot->link, ended);
    slot->link->close(ended);
  }
  for (const auto& slot : links_)
    if (auto settled = slot->link->settling(); settled && !settled())
      unsettled_.push_back(std::move(settled));
  auto closed = std::move(links_);
  links_.clear();
  for (core::Completion& completion : ended)
    if (auto* failed = std::get_if<core::Failed>(&completion); failed != nullptr) {
      failed->why = why;
      failed->rail_lost = false;
    }
  basis_.rails().deliver(ended);
  peers_.transfers().failTransfersOf(*this, why);
}

void PeerImpl::lose(const Error& why) {
  if (!isAlive()) return;
  const bool parted = ending_.is(Ending::kGoodbye);
  log(parted ? LogLevel::kInfo : LogLevel::kWarning, "peer {} lost, epoch {}: {}", name_, epoch(),
      why.text());
  if (session_) takeNotesBefore(session_->connection().framesHeard());
  closeRing();
  ring_out_.reset();
  redialer_.stop();
  peers_.bury(std::move(session_));
  sent_.clear();
  heard_ = {};
  order_ = {};
  unsaid_ = 0;
  acknowledged_.reset();
  phase_.step(parted ? PeerPhase::kPart : PeerPhase::kLose);
  ending_.step(Ending::kOver);
  if (!parted) ++basis_.counts().sessions_lost;
  ended_epoch_ = epoch_;
  last_error_ = parted && their_drain_ % 2 != 0 ? leftError() : why;
  if (why.code == Code::kExhausted) {
    exhausted_wait_ =
        std::clamp(exhausted_wait_ * 2, Redialer::kFirstBackoff, Redialer::kLastBackoff);
    refuses_until_ = basis_.now() + exhausted_wait_;
  }
  recheck_ = false;
  grants_.clear();
  endInTime();
  pins_.clear();
  closeLinks(why);
  leases_.sessionOver();
  loseMarks(why);
  peers_.parcels().sessionOver(*this, why);
  redialer_.dialLater();
  // If this end lacks descriptors, the next Peers::self() tries again.
  if (own_ && !parted && why.code != Code::kExhausted) static_cast<void>(beginOwn());
}

void PeerImpl::closed(Session& session, const Error& why) {
  if (&session != session_.get()) return redialer_.closed(session, why);
  if (ending_.is(Ending::kGoodbye)) {
    if (goodbye_) redialer_.cardIsVoid();
    return lose(Error(goodbye_.value_or(why)));
  }
  if (redialer_.isIdle()) return lose(why);
  if (ending_.is(Ending::kNone)) ending_why_ = why;
  ending_.step(Ending::kClose);
}

// If the failed attempt was to replace a session's connection, the old connection may still work,
// and the next heartbeat tries again. If the old connection has closed, the session ends.
void PeerImpl::unreached(const Error& why) {
  if (ending_.is(Ending::kCut)) return lose(Error(ending_why_));
  if (session_) return;
  const bool has_left =
      phase_.is(PeerPhase::kGone) && last_error_ && last_error_->code == Code::kDraining;
  if (!has_left) last_error_ = why;
  if (!hopeless()) return;
  phase_.step(PeerPhase::kPart);
  peers_.transfers().goOnReaching();
}

void PeerImpl::forget() {
  redialer_.forget();
  silent_.reset();
  if (isAlive()) {
    // A peer that takes no more bytes learns it from the closing of the socket.
    static_cast<void>(send(FrameType::kBye, base::encode(ByeMessage{"forgotten"})));
    ending_.step(Ending::kBye);
    lose({.code = Code::kPeerLost, .operation = "forget", .detail = "forgotten here"});
  }
  phase_.step(PeerPhase::kPart);
  peers_.transfers().endReaching(
      this,
      {.code = Code::kPeerLost, .operation = "forget", .detail = "forgotten here", .peer = name_});
  dropKeptNotes(Clock::time_point::max());
  changed();
}

}  // namespace viaduct::agent
