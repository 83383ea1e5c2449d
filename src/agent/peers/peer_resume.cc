// PeerImpl: a session continues over another connection when the network link under its connection
// is cut. docs/design/0012-a-session-outlives-its-connection.md.
#include <fmt/format.h>

#include <utility>

#include "agent/peers/peer_impl.h"
#include "agent/session/messages.h"
#include "base/log.h"

namespace viaduct::agent {

using base::log;
using base::LogLevel;

namespace {

// A peer keeps sent frames until this end confirms them. It confirms with each heartbeat, and each
// time that this many bytes have been received.
constexpr std::size_t kSayEvery = std::size_t{256} << 10U;

}  // namespace

// The number of frames that were received in this life, over all its connections.
std::uint64_t PeerImpl::heard() const {
  return heard_.total(session_->connection().numberedHeard());
}

// After the session has moved to another connection, the peer repeats unconfirmed frames. True:
// this frame was received before.
bool PeerImpl::isRepeated(std::size_t bytes) {
  if (!heard_.take(session_->connection().numberedHeard())) return true;
  unsaid_ += bytes;
  if (unsaid_ >= kSayEvery) sayHeard();
  return false;
}

void PeerImpl::sayHeard() {
  Connection& connection = session_->connection();
  if (ending_.is(Ending::kCut)) return;
  if (ring_out_) return ring_out_->beat();
  base::Bytes payload;
  if (connection.canResume()) payload = base::Writer().put(heard()).take();
  unsaid_ = 0;
  // kPeerLost: closed() is called next. kBusy: too many unsent bytes precede the heartbeat for it
  // to arrive in time.
  if (auto sent = connection.send(FrameType::kHeartbeat, payload);
      !sent && sent.error().code != Code::kPeerLost && sent.error().code != Code::kBusy)
    breakOff(sent.error());
}

void PeerImpl::takeHeartbeat(std::span<const std::byte> heartbeat) {
  if (heartbeat.empty()) return;
  base::Reader in(heartbeat);
  const auto count = in.get<std::uint64_t>();
  if (!in.finished() || !sent_.heard(count))
    breakOff(brokenRule(fmt::format("a heartbeat confirms {} frames, which were not sent", count)));
}

// True if the peer's host has not acknowledged the last heartbeat when the next is due. The host of
// a frozen peer would have.
bool PeerImpl::seemsCut() {
  if (!session_->dialed() || !session_->connection().canResume()) return false;
  const base::Hearing heard = session_->connection().hearing();
  return std::exchange(acknowledged_, heard.acknowledged) == heard.acknowledged && heard.awaited;
}

// Only the end that dialed moves the session, so that two moves do not cross.
void PeerImpl::reachAnotherWay() {
  const Connection& connection = session_->connection();
  if (!redialer_.isIdle() || ending_.is(Ending::kGoodbye)) return;
  auto targets = connection.theirs().addresses;
  std::erase(targets, connection.remoteText());
  if (targets.empty()) return;
  log(LogLevel::kWarning, "peer {}: {} is silent; its session moves to another address", name_,
      connection.remoteText());
  redialer_.move(std::move(targets), connection.lastHeard() + basis_.settings().detect);
}

std::optional<Life> PeerImpl::lifeToContinue() {
  if (!session_) return std::nullopt;
  said_heard_ = heard();
  return Life{.epoch = epoch_, .heard = said_heard_, .key = life_key_};
}

// Runs at the listener. From here on the old connection is no longer read.
Result<Life> PeerImpl::judgeResume(Session& session, const Hello& theirs,
                                   std::span<const Grant> grants) {
  const auto& asked = session.connection().resume();
  if (!asked || !session_ || session_->dialed() || epoch_ != asked->epoch ||
      session_->connection().theirs().agent != theirs.agent ||
      claimOf(grants) != claimOf(grants_) || !session.connection().proves(life_key_) ||
      !sent_.follows(asked->heard))
    return Error{.code = Code::kPeerLost,
                 .operation = "resume",
                 .detail = "that session is over",
                 .peer = name_};
  const std::uint64_t so_far = heard();
  heard_.goOn(session_->connection().numberedHeard(), so_far);
  peers_.bury(std::exchange(session_, peers_.takeNewcomer(session)));
  session.belongsTo(shared_from_this());
  return Life{.epoch = epoch_, .heard = so_far, .key = life_key_};
}

// Runs at both ends: sends again the frames that the other end has not received.
void PeerImpl::resumed(Session& session, std::uint64_t they_heard) {
  if (auto attempt = redialer_.take(session)) {
    heard_.goOn(session_->connection().numberedHeard(), said_heard_);
    peers_.bury(std::exchange(session_, std::move(attempt)));
  }
  ending_.step(Ending::kMove);
  acknowledged_.reset();
  if (!sent_.heard(they_heard) || !sent_.follows(they_heard))
    return breakOff({.code = Code::kPeerLost,
                     .operation = "resume",
                     .detail = "frames that the peer lacks are gone"});
  log(LogLevel::kWarning, "peer {}: its session continues over {}", name_,
      session.connection().remoteText());
  session.connection().pauseReading(paused_);
  for (const auto& [type, payload] : sent_.kept())
    if (auto sent = session.connection().send(type, payload); !sent) return breakOff(sent.error());
}

}  // namespace viaduct::agent
