#include "agent/peers/redialer.h"

#include <algorithm>
#include <utility>

#include "agent/peers/peer_impl.h"
#include "base/log.h"

namespace viaduct::agent {

using base::log;
using base::LogLevel;

namespace {

constexpr Duration kDialLimit = std::chrono::seconds(5);

}  // namespace

Redialer::Redialer(Peers& peers, PeerImpl& peer)
    : basis_(peers.basis()), peers_(peers), peer_(peer) {}
Redialer::~Redialer() = default;

bool Redialer::isAimed() const { return !target_.is(Target::kNone) && !isWrong(); }

void Redialer::aim(const Card& card, std::vector<Grant> mine) {
  secret_ = card.secret;
  theirs_ = card.grants;
  mine_ = std::move(mine);
  unix_name_ = card.unix_name;
  tried_unix_.clear();
  on_this_host_ = basis_.isThisHost(card.boot);
  addresses_ = card.addresses;
  target_.step(Target::kAim);
  if (peer_.isAlive()) return target_.step(Target::kMeet);
  if (isIdle() || reach_.is(Reach::kBackOff)) dial();
}

void Redialer::forget() {
  target_.step(Target::kForget);
  stop();
}

void Redialer::stop() {
  reach_.step(Reach::kStop);
  basis_.engine().poller().forgetTimer(std::exchange(timer_, 0));
  dialer_.reset();
  peers_.bury(std::move(attempt_));
}

void Redialer::dial() {
  std::vector<std::string> targets;
  if (on_this_host_ && !unix_name_.empty() && tried_unix_ != unix_name_)
    targets.push_back("unix:@" + unix_name_);
  targets.insert(targets.end(), addresses_.begin(), addresses_.end());
  tried_unix_ = unix_name_;
  move(std::move(targets), basis_.now() + kDialLimit);
}

void Redialer::move(std::vector<std::string> targets, Clock::time_point until) {
  reach_.step(Reach::kDial);
  basis_.engine().poller().forgetTimer(std::exchange(timer_, 0));
  dialer_ = base::Dialer::start(std::move(targets), until, basis_.engine().poller(),
                                [this](Result<base::Fd> socket, const std::string& target) {
                                  dialed(std::move(socket), target);
                                });
}

void Redialer::dialed(Result<base::Fd> socket, const std::string& target) {
  dialer_.reset();
  if (!socket) return failed(socket.error());
  log(LogLevel::kDebug, "peer {}: connected to {}", peer_.name(), target);
  reach_.step(Reach::kConnected);
  attempt_ = std::make_unique<Session>(peers_, peer_.shared_from_this());
  if (auto opened = attempt_->dial(*std::move(socket), secret_, claimOf(theirs_), peer_.epoch(),
                                   peer_.lifeToContinue());
      !opened)
    failed(opened.error());
}

void Redialer::failed(const Error& why) {
  stop();
  peer_.unreached(why);
  dialLater();
}

void Redialer::dialLater() {
  peer_.changed();
  if (!isAimed() || peer_.isAlive() || !isIdle()) return;
  reach_.step(Reach::kWait);
  backoff_ = std::clamp<Duration>(backoff_ * 2, kFirstBackoff, kLastBackoff);
  tried_unix_.clear();
  timer_ = basis_.engine().poller().at(basis_.now() + backoff_, [this] { dial(); });
}

bool Redialer::upgrade(const std::string& unix_name) {
  if (unix_name.empty() || tried_unix_ == unix_name) return false;
  unix_name_ = unix_name;
  on_this_host_ = true;
  stop();
  dial();
  return true;
}

void Redialer::met(const Hello& theirs) {
  target_.step(Target::kMeet);
  on_this_host_ = basis_.isThisHost(theirs.boot);
}

std::unique_ptr<Session> Redialer::take(const Session& session) {
  if (attempt_.get() != &session) return nullptr;
  reach_.step(Reach::kStop);
  return std::move(attempt_);
}

// kDenied after the proofs is the peer's own word about the card. kDenied before the proofs means
// that the secret is wrong. Then a card that never led to the peer stays wrong. If the card once
// did, another program has taken the address. That program may leave, and the peer may dial by
// itself.
void Redialer::closed(const Session& session, const Error& why) {
  if (&session != attempt_.get()) return;
  if (why.code == Code::kDenied && !attempt_->connection().theirs().name.empty()) {
    log(LogLevel::kWarning, "peer {}: {}", peer_.name(), why.text());
    cardIsVoid();
  } else if (why.code == Code::kDenied && !peer_.isAlive()) {
    if (!target_.is(Target::kUsurped))
      log(LogLevel::kWarning, "peer {}: {}",
          peer_.name().empty() ? "that is not met yet" : peer_.name(), why.text());
    target_.step(Target::kDeny);
  }
  failed(why);
}

}  // namespace viaduct::agent
