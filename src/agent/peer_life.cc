// PeerImpl: how the lives of a peer's session begin and end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/agent_impl.h"
#include "agent/peer_impl.h"
#include "agent/session/messages.h"
#include "base/log.h"

namespace viaduct::agent {

using base::log;
using base::LogLevel;

namespace {

constexpr Duration kDialLimit = std::chrono::seconds(5);

}  // namespace

void PeerImpl::setTarget(const Card& card) {
  secret_ = card.secret;
  unix_name_ = card.unix_name;
  tried_unix_.clear();
  on_this_host_ = agent_.isThisHost(card.boot);
  addresses_ = card.addresses;
  wanted_ = true;
  denied_ = false;
  met_ = session_ != nullptr;
  if (!session_ && !attempt_ && !dialer_) dial();
}

void PeerImpl::setTarget(std::string host_port, const std::array<std::uint8_t, 32>& secret) {
  secret_ = secret;
  addresses_ = {std::move(host_port)};
  wanted_ = true;
  dial();
}

void PeerImpl::dial() {
  std::vector<std::string> targets;
  if (on_this_host_ && !unix_name_.empty() && tried_unix_ != unix_name_)
    targets.push_back("unix:@" + unix_name_);
  targets.insert(targets.end(), addresses_.begin(), addresses_.end());
  tried_unix_ = unix_name_;
  dialer_ =
      base::Dialer::start(std::move(targets), Clock::now() + kDialLimit, agent_.engine().poller(),
                          [this](Result<base::Fd> socket, const std::string& target) {
                            dialed(std::move(socket), target);
                          });
}

void PeerImpl::dialed(Result<base::Fd> socket, const std::string& target) {
  buried_dialer_ = std::move(dialer_);  // it is calling us
  if (!socket) {
    if (session_) return attemptFailed();
    last_error_ = std::move(socket).error();
    return redialLater();
  }
  log(LogLevel::kDebug, "peer {}: connected to {}", name_, target);
  std::optional<Life> goes_on;
  if (session_) goes_on = Life{.epoch = epoch_, .heard = said_heard_ = heard(), .key = life_key_};
  attempt_ = std::make_unique<Session>(agent_, shared_from_this());
  if (auto opened = attempt_->open(*std::move(socket), secret_, epoch_, goes_on); !opened) {
    attempt_.reset();
    if (session_) return attemptFailed();
    last_error_ = std::move(opened).error();
    redialLater();
  }
}

void PeerImpl::redialLater() {
  agent_.engine().changed();
  if (!wanted_ || session_ || attempt_ || dialer_ || redial_ != 0) return;
  backoff_ = std::clamp<Duration>(backoff_ * 2, kFirstBackoff, kLastBackoff);
  tried_unix_.clear();
  redial_ = agent_.engine().poller().at(Clock::now() + backoff_, [this] {
    redial_ = 0;
    if (wanted_ && !session_ && !attempt_ && !dialer_) dial();
  });
}

void PeerImpl::dropAttempt() {
  dialer_.reset();
  if (!attempt_) return;
  attempt_->orphan();
  agent_.bury(std::move(attempt_));
}

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
  if (!session.connection().isUnix() && agent_.isThisHost(theirs.boot) &&
      !theirs.unix_name.empty() && tried_unix_ != theirs.unix_name) {
    unix_name_ = theirs.unix_name;
    on_this_host_ = upgrading_ = true;
    return Error{.code = Code::kBusy, .operation = "connect", .detail = "same host: Unix socket"};
  }
  if (name_.empty()) {
    name_ = theirs.name;
    agent_.joinByName(shared_from_this());
    if (same_as)
      return Error{.code = Code::kBusy, .operation = "connect", .detail = "already connected"};
  }
  return Life{.epoch = epoch_};
}

// Two ends that dial each other at once: the one with the smaller id keeps its own connection. The
// other's hello may be heard late, when that session has begun: it knows nothing of it.
Result<Life> PeerImpl::judgeAccepted(Session& session, const Hello& theirs) {
  const bool same_life = session_ && session_->connection().theirs().agent == theirs.agent;
  const auto now = Clock::now();
  const bool healthy = session_ && now - lastHeard(now) < beatEvery() * 2;
  // However silent: it is lost after Settings::detect, and not before.
  if (session_ && !same_life)
    return Error{.code = Code::kBusy,
                 .operation = "connect",
                 .detail = fmt::format("an agent named {} is connected already", name_),
                 .peer = name_,
                 .cause = "two agents have the same name",
                 .remedy = "give each agent its own Settings::name"};
  const bool late = same_life && healthy && theirs.last_epoch < epoch_;
  if (late || (attempt_ && !session_ && agent_.precedes(theirs)))
    return Error{.code = Code::kBusy,
                 .operation = "connect",
                 .detail = "both ends dialed: this end's connection stays"};
  if (now < refuses_until_)
    return Error{
        .code = Code::kBusy,
        .operation = "connect",
        .detail = fmt::format("agent {} could not keep the last session: {}",
                              agent_.settings().name, last_error_.value_or(Error{}).text()),
        .cause = "it has too few file descriptors or too little memory",
        .remedy = "raise its limits (ulimit -n); this agent retries"};
  if (session_)
    lose({.code = Code::kPeerLost,
          .operation = "session",
          .detail = "the peer has begun a new session",
          .peer = name_});
  dropAttempt();
  session_ = agent_.takeNewcomer(session);
  session.belongsTo(shared_from_this());
  return Life{.epoch = std::max(epoch_, theirs.last_epoch) + 1};
}

void PeerImpl::established(Session& session, std::uint64_t epoch) {
  if (const auto& theirs = session.connection().resume()) return resumed(session, theirs->heard);
  if (attempt_.get() == &session) session_ = std::move(attempt_);
  life_key_ = session.connection().deriveKey("life");
  epoch_ = epoch;
  met_ = true;
  state_ = PeerState::kConnecting;
  denied_ = said_bye_ = synced_ = paused_ = note_dropped_ = false;
  note_sender_->name = name_;
  if (session.connection().isUnix()) openRing();
  openLinks(session);
  // Before the peer has reason to be ready.
  if (auto why = exhausted()) return breakOff(*std::move(why));
  for (const PinEntry& entry : agent_.pins().slots())
    if (entry.generation != 0) announce(entry);
  sendOrLose(FrameType::kSynced, {});
  agent_.beatSooner(beatEvery());
  linkChanged();
}

void PeerImpl::openLinks(Session& session) {
  const Connection& connection = session.connection();
  const Hello& theirs = connection.theirs();
  const bool same_process = agent_.isThisProcess(theirs);
  on_this_host_ = agent_.isThisHost(theirs.boot);
  for (std::size_t i = 0; i < agent_.backendCount(); ++i) {
    const auto name = agent_.backend(i).can().name;
    const auto common = std::find_if(theirs.backends.begin(), theirs.backends.end(),
                                     [&](const auto& backend) { return backend.first == name; });
    if (common == theirs.backends.end()) continue;
    auto& slot =
        links_.emplace_back(std::make_unique<LinkSlot>(*this, i, agent_.backend(i).rails().size()));
    slot->link = agent_.backend(i).link({.peer = name_,
                                         .epoch = epoch_,
                                         .dialer = session.dialed(),
                                         .same_process = same_process,
                                         .same_host = same_process || connection.isUnix(),
                                         .unix_socket = connection.isUnix(),
                                         .pid = connection.peerPid(),
                                         .address = common->second,
                                         .key = connection.deriveKey("link:" + common->first)},
                                        *slot);
  }
}

// On return nothing of ours touches memory for this life, and its transfers have ended.
void PeerImpl::closeLinks(const Error& why) {
  core::Completions ended;
  for (auto& slot : links_) slot->link->close(ended);
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
  agent_.apply(ended);
  agent_.failTransfersOf(*this, why);
}

void PeerImpl::lose(const Error& why) {
  if (!session_) return;
  log(said_bye_ ? LogLevel::kInfo : LogLevel::kWarning, "peer {} lost, epoch {}: {}", name_, epoch_,
      why.text());
  takeNotesBefore(session_->connection().framesHeard());
  closeRing();
  ring_out_.reset();
  dropAttempt();
  session_->orphan();
  agent_.bury(std::move(session_));
  sent_.clear();
  heard_ = {};
  unsaid_ = 0;
  acknowledged_.reset();
  way_lost_.reset();
  state_ = said_bye_ ? PeerState::kGone : PeerState::kLost;
  if (!said_bye_) ++agent_.counts().sessions_lost;
  ended_epoch_ = epoch_;
  last_error_ = why;
  if (why.code == Code::kExhausted) {
    exhausted_wait_ = std::clamp(exhausted_wait_ * 2, kFirstBackoff, kLastBackoff);
    refuses_until_ = Clock::now() + exhausted_wait_;
  }
  recheck_ = false;
  broken_.reset();
  pins_.clear();
  next_read_only_.reset();
  announced_.clear();
  pins_bytes_.give(pins_bytes_.used());
  ++pins_version_;
  closeLinks(why);
  redialLater();
}

void PeerImpl::closed(Session& session, const Error& why) {
  if (&session == session_.get()) {
    if (said_bye_ || !isReaching()) return lose(why);
    way_lost_ = why;
    return;
  }
  if (&session != attempt_.get()) return;
  session.orphan();
  agent_.bury(std::move(attempt_));
  if (session_) return attemptFailed();
  if (same_as) {
    wanted_ = false;
    return agent_.engine().changed();
  }
  if (std::exchange(upgrading_, false)) return dial();
  last_error_ = why;
  if (why.code == Code::kDenied) denied(why);
  redialLater();
}

// A Card that was never right will not become it. Where one was, another agent has taken the
// address since: it may leave it again, and the peer may come to us.
void PeerImpl::denied(const Error& why) {
  if (std::exchange(denied_, true)) return;
  log(LogLevel::kWarning, "peer {}: {}", name_.empty() ? "that is not met yet" : name_, why.text());
  if (met_) return;
  wanted_ = false;
  state_ = PeerState::kGone;
}

void PeerImpl::close() {
  forget();
  buried_dialer_.reset();
}

void PeerImpl::forget() {
  wanted_ = false;
  dropAttempt();
  if (redial_ != 0) agent_.engine().poller().forgetTimer(std::exchange(redial_, 0));
  if (session_) {
    scratch_.clear();
    ByeMessage{"forgotten"}.encode(scratch_);
    // A peer that takes no more bytes learns it from the closing of the socket.
    static_cast<void>(send(FrameType::kBye, scratch_));
    said_bye_ = true;
    lose({.code = Code::kPeerLost, .operation = "forget", .detail = "forgotten here"});
  }
  state_ = PeerState::kGone;
  agent_.engine().changed();
}

}  // namespace viaduct::agent
