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

Status Session::open(base::Fd socket, const std::array<std::uint8_t, 32>& secret,
                     std::uint64_t last_epoch, std::optional<Life> resume) {
  VIADUCT_TRY(connection_,
              Connection::open(std::move(socket),
                               dialed_ ? Connection::Role::kDialer : Connection::Role::kListener,
                               {.secret = secret,
                                .mine = [this, last_epoch] { return peers_.hello(last_epoch); },
                                .resume = resume,
                                .handshake_until = peers_.basis().now() + kHandshakeLimit,
                                .max_unsent = kMaxUnsent},
                               peers_.basis().engine().poller(), *this));
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
