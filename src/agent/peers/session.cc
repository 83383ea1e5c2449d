// Session: one connection of a session, which passes received frames to its peer.
#include <utility>

#include "agent/peers/peer_impl.h"
#include "base/log.h"

namespace viaduct::agent {
namespace {

constexpr auto kHandshakeLimit = std::chrono::seconds(3);
// With more unsent bytes, note() returns kBusy. Room for a few of the largest notes.
constexpr std::size_t kMaxUnsent = std::size_t{16} << 20U;

}  // namespace

Status Session::dial(base::Fd socket, const Key& secret, base::Bytes claim,
                     std::uint64_t last_epoch, std::optional<Life> resume) {
  return open(std::move(socket), {.secret = secret,
                                  .claim = std::move(claim),
                                  .mine = [this, last_epoch] { return peers_.hello(last_epoch); },
                                  .resume = resume});
}

Status Session::accept(base::Fd socket) {
  return open(std::move(socket),
              {.secret = peers_.secret(),
               .secret_of_claim = [this](base::ByteSpan claim) { return peers_.secretOf(claim); },
               .mine = [this] { return peers_.hello(0); }});
}

Status Session::open(base::Fd socket, ConnectionConfig config) {
  config.handshake_until = peers_.basis().now() + kHandshakeLimit;
  config.max_unsent = kMaxUnsent;
  VIADUCT_TRY(connection_,
              Connection::open(std::move(socket),
                               dialed_ ? Connection::Role::kDialer : Connection::Role::kListener,
                               std::move(config), peers_.basis().engine().poller(), *this));
  return Ok{};
}

Result<Life> Session::judge(const Hello& theirs) {
  const auto peer = peer_;  // the call may reset peer_
  return dialed_ ? peer->judgeDialed(*this, theirs) : peers_.admit(*this, theirs);
}

void Session::established(std::uint64_t epoch) { peer_->established(*this, epoch); }

void Session::frame(FrameType type, std::span<const std::byte> payload, std::vector<base::Fd> fds) {
  if (peer_) peer_->frame(type, payload, std::move(fds));
}

// Takes the place that the listener has given this connection. The listener calls `drop` if it
// needs the place or the descriptor for a newer connection.
void Session::unproven(base::Unproven::Place place) {
  place_ = std::move(place);
  const auto drop = [this] {
    base::log(base::LogLevel::kInfo,
              "an unauthenticated connection from {} was dropped for a newer one",
              connection_->remoteText());
    peers_.bury(peers_.takeNewcomer(*this));
  };
  place_.watch([this] { return connection_->framesHeard() > 0; }, drop);
}

void Session::closed(const Error& why) {
  if (const auto peer = peer_) return peer->closed(*this, why);
  base::log(base::LogLevel::kInfo, "a connection from {} was rejected: {}",
            connection_ ? connection_->remoteText() : "?", why.text());
  peers_.bury(peers_.takeNewcomer(*this));
}

}  // namespace viaduct::agent
