#include "meet/embedded/server_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace viaduct::meet::embedded {
namespace {

using namespace std::chrono_literals;

// The limits of one try of each step. The next try starts afresh, perhaps with another address.
constexpr auto kDialTime = 3s, kHelloTime = 5s, kLongestHelloTime = 60s;
// The limit for a server that may be replaced, because a frozen one must not delay a new election.
constexpr auto kShortHelloTime = 2s;
constexpr int kTicksPerDetect = 4;

// The error for a server that sends no hello.
Error noHello(Code code, std::string_view what) {
  return {.code = code,
          .operation = "hello",
          .detail = fmt::format("it accepted the connection, and {}", what),
          .cause = "its process is frozen or ends, or another program listens there",
          .remedy = "find the process with that port: ss -ltnp"};
}

Error silent() { return noHello(Code::kTimeout, "is silent"); }

}  // namespace

void ServerConnection::close() {
  loop().poller().forgetTimer(std::exchange(timer_, 0));
  dialer_.reset();
  socket_.reset();
  phase_ = Phase::kClosed;
  site_->turns->end(std::exchange(turn_, 0));
}

void ServerConnection::setTimer(Clock::time_point when, void (ServerConnection::*then)()) {
  loop().poller().forgetTimer(timer_);
  timer_ = loop().poller().at(when, [this, then] {
    timer_ = 0;
    (this->*then)();
  });
}

void ServerConnection::open(Clock::time_point until, std::chrono::milliseconds first_after) {
  close();
  began_ = Clock::now();
  until_ = until;
  tries_ = 0;
  pauses_.reset();
  hello_time_ = once_ ? kShortHelloTime : kHelloTime;
  denied_ = false;
  if (first_after.count() == 0) {
    attempt();
  } else {
    phase_ = Phase::kPausing;
    setTimer(Clock::now() + first_after, &ServerConnection::attempt);
  }
  loop().wake();
}

void ServerConnection::attempt() {
  phase_ = Phase::kPausing;
  turn_ = site_->turns->ask([this] { dial(); });
}

void ServerConnection::dial() {
  if (untried_.empty()) untried_ = site_->addresses;
  ++tries_;
  phase_ = Phase::kDialing;
  dialer_ = base::Dialer::start(
      untried_, std::min(until_, Clock::now() + kDialTime), loop().poller(),
      [this](Result<base::Fd> socket, const std::string& address) {
        dialer_.reset();
        const auto answered = std::find(untried_.begin(), untried_.end(), address);
        untried_.erase(untried_.begin(), answered + (answered == untried_.end() ? 0 : 1));
        socket ? connected(std::move(*socket)) : failed(std::move(socket).error());
      });
  loop().wake();
}

void ServerConnection::connected(base::Fd socket) {
  socket_ = std::make_unique<MessageSocket>(std::move(socket), kMaxUnproven);
  phase_ = Phase::kProving;
  auto handshake = base::Handshake::dial(site_->token, kVersion, kBinding);
  const Status watched = socket_->watch(loop().poller(), [this] { onReadable(); });
  if (!handshake || !watched) return failed(handshake ? watched.error() : handshake.error());
  handshake_ = std::move(*handshake);
  setTimer(std::min<Clock::time_point>(until_, Clock::now() + hello_time_),
           &ServerConnection::helloTimedOut);
  write(makePacket(Type::kOpen, handshake_->open()));
}

// A crowded server gets more time at each try, because a new try would begin from the start.
void ServerConnection::helloTimedOut() {
  hello_time_ = std::min<Duration>(2 * hello_time_, kLongestHelloTime);
  untried_.clear();  // the server's other addresses would not answer either
  failed(silent());
}

void ServerConnection::send(const PacketPtr& packet) {
  if (phase_ == Phase::kReady) write(packet);
}

// A failed socket is detected when it is read, so that earlier messages are delivered first.
void ServerConnection::write(const PacketPtr& packet) { static_cast<void>(socket_->send(packet)); }

void ServerConnection::onReadable() {
  const auto read = socket_->read([this](const base::Frame& frame) { return take(frame); });
  // A killed process leaves an end of stream or a reset, depending on its unread bytes.
  if (!read ? read.error().os_errno == ECONNRESET : !*read)
    return failed(phase_ == Phase::kReady
                      ? Error{.code = Code::kPeerLost,
                              .operation = "meet",
                              .detail = "the meeting place closed the connection",
                              .cause = "its process has ended"}
                      : noHello(Code::kPeerLost, "closed it"));
  if (!read) return failed(read.error());
  heard_ = Clock::now();
}

Status ServerConnection::take(const base::Frame& frame) {
  const Type type = typeOf(frame);
  const ByteSpan payload = frame.payload;
  if (phase_ == Phase::kReady) {
    if (type == Type::kBeat) return Ok{};
    if (type != Type::kPing) return user_.message(type, payload);
    write(makePacket(Type::kPong, Bytes(payload.begin(), payload.end())));
    return Ok{};
  }
  using Stage = base::Handshake::Stage;
  if (type == Type::kChallenge && handshake_) return prove(Stage::kChallenge, frame);
  if (type == Type::kConfirm && handshake_) return prove(Stage::kConfirm, frame);
  // `handshake_` is empty once the server has proved itself. An earlier welcome is not
  // authenticated.
  if (type == Type::kWelcome && !handshake_) return welcome(payload);
  if (type == Type::kDeny) return denied(payload);
  return Error{.code = Code::kProtocol, .operation = "hello", .detail = "an unexpected message"};
}

Status ServerConnection::prove(base::Handshake::Stage stage, const base::Frame& frame) {
  auto step = handshake_->take(stage, frame.payload, frame.minor);
  if (!step && step.error().code == Code::kDenied) {
    denied_ = true;
    write(makePacket(Type::kDeny));  // the server reports the wrong token
    return wrongToken();
  }
  if (!step) return std::move(step).error();
  if (!step->proven) {
    write(makePacket(Type::kProof, std::move(step->reply)));
    return Ok{};
  }
  VIADUCT_CHECK(socket_->useKeys(handshake_->sendingKey(), handshake_->receivingKey()));
  handshake_.reset();
  return Ok{};
}

Status ServerConnection::welcome(ByteSpan payload) {
  VIADUCT_TRY(const auto theirs, base::decode<WelcomeMessage>(payload));
  socket_->setLimit(kMaxFromServer);
  detect_ = std::max(10ms, std::chrono::milliseconds(theirs.detect_ms));
  heard_ = ticked_ = Clock::now();
  phase_ = Phase::kReady;
  site_->turns->end(std::exchange(turn_, 0));
  tick();
  user_.ready();
  return Ok{};
}

Status ServerConnection::denied(ByteSpan payload) {
  VIADUCT_TRY(auto why, base::decode<ErrorMessage>(payload));
  denied_ = true;
  return std::move(why.error);
}

void ServerConnection::tick() {
  const auto every = detect_ / kTicksPerDetect;
  const auto now = Clock::now();
  // If this process itself was stopped, messages that the server sent meanwhile are still unread.
  if (now - std::exchange(ticked_, now) > 2 * every) heard_ = now;
  if (now - heard_ > detect_)
    return failed({.code = Code::kPeerLost,
                   .operation = "meet",
                   .detail = fmt::format("the meeting place has been silent for {:.1f} s",
                                         std::chrono::duration<double>(now - heard_).count()),
                   .cause = "its process is frozen, or its host or the network is down"});
  write(makePacket(Type::kBeat));
  setTimer(now + every, &ServerConnection::tick);
}

void ServerConnection::failed(Error why) {
  const bool was_ready = phase_ == Phase::kReady;
  close();
  const auto now = Clock::now();
  // A closed connection is tried again, because the server may be restarting. A refusal is final.
  const bool final = denied_ || why.code == Code::kProtocol || why.code == Code::kInvalid ||
                     why.code == Code::kUnsupported;
  last_ = std::move(why);
  // An address, such as that of a bridge, may lead to another host. So the next address is tried.
  const bool all_tried = untried_.empty();
  if (was_ready || final || now >= until_ || (once_ && all_tried))
    return user_.lost(unreachable(), !final);
  phase_ = Phase::kPausing;
  setTimer(std::min<Clock::time_point>(until_, now + pauses_.next()), &ServerConnection::attempt);
}

Error ServerConnection::unreachable() const {
  Error why =
      last_ ? *last_
      : phase_ == Phase::kProving
          ? silent()
          : Error{.code = Code::kTimeout, .operation = "connect", .detail = "no answer yet"};
  const auto took = std::chrono::duration<double>(Clock::now() - began_).count();
  why.detail = fmt::format("meeting place {}: {}: {}", site_->where, why.operation, why.detail);
  if (tries_ > 1) why.detail += fmt::format("; tried {} times in {:.1f} s", tries_, took);
  why.peer.clear();  // the detail names the server already
  return why;
}

}  // namespace viaduct::meet::embedded
