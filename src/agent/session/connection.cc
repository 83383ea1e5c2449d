#include "agent/session/connection.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "agent/session/handshake.h"
#include "agent/session/inbox.h"
#include "agent/session/messages.h"
#include "agent/session/outbox.h"
#include "agent/session/way.h"
#include "base/random.h"

namespace viaduct::agent {
namespace {

// Reads of one turn, so that one loud peer does not keep the others waiting.
constexpr int kReadsPerTurn = 8;
// Reads of what a peer sent before it was lost.
constexpr int kLastReads = 256;

}  // namespace

class Connection::Impl {
 public:
  Impl(base::Fd socket, Role role, ConnectionConfig config, base::Poller& poller,
       ConnectionUser& user)
      : socket_(std::move(socket)),
        role_(role),
        config_(std::move(config)),
        poller_(poller),
        user_(user) {}
  ~Impl() {
    if (gone_ != nullptr) *gone_ = true;
    leavePoller();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status start();
  Status send(FrameType type, ByteSpan head, ByteSpan body, std::span<const int> fds);
  void pause(bool paused);
  void readNow();

  const Hello& theirs() const { return theirs_; }
  bool isUnix() const { return way_.is_unix; }
  int peerPid() const { return way_.peer_pid; }
  const std::string& remoteText() const { return way_.remote; }
  Key derive(std::string_view purpose) const { return base::deriveKey(common_, purpose); }
  Clock::time_point lastHeard() const { return last_heard_; }
  std::size_t unsent() const { return outbox_.unsent(); }
  std::uint64_t framesSent() const { return sealer_.sealed(); }
  std::uint64_t framesHeard() const { return inbox_.decoder().taken(); }

 private:
  enum class Phase : std::uint8_t { kProving, kMeeting, kAwaitingVerdict, kReady, kClosed };

  // Those that return bool may have called the user: false means that the connection is closed,
  // and perhaps destroyed: return at once.
  void onEvents(std::uint32_t events);
  bool readTurn();
  bool readOnce(Inbox::Read& got);
  bool deliver();
  bool take(const Frame& frame);
  bool prove(const Frame& frame);
  void useKeys();
  bool meet(const Frame& frame);
  bool hearVerdict(const Frame& frame);
  bool establish(std::uint64_t epoch);
  bool say(FrameType type, ByteSpan payload);
  bool fail(Error why);
  template <class Call>
  bool tell(Call call);

  Status write(FrameType type, ByteSpan head, ByteSpan body, std::vector<base::Fd> fds);
  void sendFailed(const Error& why);
  void flush();
  void soon();
  void onSoon();
  void listen();
  void leavePoller();
  bool mayRead() const { return !paused_ || ended_; }
  Error protocolError(std::string detail) const;

  base::Fd socket_;
  const Role role_;
  const ConnectionConfig config_;
  base::Poller& poller_;
  ConnectionUser& user_;

  Phase phase_ = Phase::kProving;
  std::unique_ptr<Handshake> proof_;  // until it is given
  Key common_ = {};                   // what deriveKey() starts from
  FrameSealer sealer_;
  Inbox inbox_;
  Outbox outbox_;
  Hello theirs_;
  std::optional<Error> send_error_;  // the socket takes nothing more; reading finds out the rest
  Clock::time_point last_heard_ = Clock::now();
  Way way_;

  bool paused_ = false;
  bool ended_ = false;    // the other end has closed: what it sent before is read, paused or not
  bool* gone_ = nullptr;  // set while the user is being called
  base::Poller::Id watch_ = 0, handshake_timer_ = 0, soon_timer_ = 0;
  std::uint32_t watched_ = 0;
};

Status Connection::Impl::start() {
  base::Bytes hello;
  config_.mine.encode(hello);
  if (hello.size() > kMaxHelloPayload || !Hello::decode(hello))
    return Error{.operation = "connection",
                 .detail = "what this agent says of itself is beyond the protocol's limits",
                 .remedy = "a shorter name, fewer addresses or backends"};
  VIADUCT_TRY(way_, describeWay(socket_.get(), role_ == Role::kDialer));
  Key nonce;
  VIADUCT_CHECK(base::fillSecret(nonce));
  proof_ = std::make_unique<Handshake>(role_ == Role::kDialer, config_.secret, nonce, way_.binding);
  if (role_ == Role::kDialer) {
    const Handshake::Message first = proof_->open();
    VIADUCT_CHECK(write(first.type, first.payload(), {}, {}));
  }
  watched_ = EPOLLIN | EPOLLRDHUP;
  VIADUCT_TRY(watch_, poller_.watch(socket_.get(), watched_,
                                    [this](std::uint32_t events) { onEvents(events); }));
  handshake_timer_ = poller_.at(config_.handshake_until, [this] {
    handshake_timer_ = 0;
    fail({.code = Code::kTimeout,
          .operation = "handshake",
          .detail = "the other end did not finish it in time",
          .cause = "it is frozen or overloaded, or no Viaduct agent listens there"});
  });
  return Ok{};
}

void Connection::Impl::leavePoller() {
  poller_.forget(std::exchange(watch_, 0));
  poller_.forgetTimer(std::exchange(handshake_timer_, 0));
  poller_.forgetTimer(std::exchange(soon_timer_, 0));
}

void Connection::Impl::listen() {
  const bool writes = outbox_.unsent() > 0 && !send_error_;
  const std::uint32_t wanted = (mayRead() ? EPOLLIN : 0U) | EPOLLRDHUP | (writes ? EPOLLOUT : 0U);
  if (watch_ == 0 || wanted == watched_) return;
  watched_ = wanted;
  if (const Status changed = poller_.change(watch_, wanted); !changed) sendFailed(changed.error());
}

template <class Call>
bool Connection::Impl::tell(Call call) {
  bool gone = false;
  gone_ = &gone;
  call();
  if (gone) return false;
  gone_ = nullptr;
  return phase_ != Phase::kClosed;
}

bool Connection::Impl::fail(Error why) {
  leavePoller();
  socket_.reset();
  phase_ = Phase::kClosed;
  if (why.peer.empty()) why.peer = theirs_.name.empty() ? way_.remote : theirs_.name;
  tell([&] { user_.closed(why); });
  return false;
}

Error Connection::Impl::protocolError(std::string detail) const {
  return {.code = Code::kProtocol, .operation = "receive", .detail = std::move(detail)};
}

void Connection::Impl::onEvents(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) ended_ = true;
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && !readTurn()) return;
  listen();
}

bool Connection::Impl::readTurn() {
  Inbox::Read got{.more = true};
  for (int i = 0; i < kReadsPerTurn && got.more && mayRead(); ++i)
    if (!readOnce(got)) return false;
  return true;
}

bool Connection::Impl::readOnce(Inbox::Read& got) {
  auto read = inbox_.read(socket_.get());
  if (!read) return fail(std::move(read).error());
  got = *read;
  if (got.ended)
    return fail({.code = Code::kPeerLost,
                 .operation = phase_ == Phase::kReady ? "receive" : "handshake",
                 .detail = inbox_.decoder().midFrame()
                               ? "the peer closed the connection in the middle of a frame"
                               : "the peer closed the connection"});
  if (got.bytes == 0) return true;
  last_heard_ = Clock::now();
  return deliver();
}

bool Connection::Impl::deliver() {
  Frame frame;
  while (mayRead()) {
    switch (inbox_.decoder().next(frame)) {
      case FrameDecoder::Next::kMore:
        return true;
      case FrameDecoder::Next::kBroken:
        // So that the other end, if it can read us at all, sees who broke off and our version.
        if (phase_ == Phase::kProving && !send_error_)
          static_cast<void>(
              write(FrameType::kDeny, Handshake::deny(Code::kProtocol).payload(), {}, {}));
        return fail(inbox_.decoder().error());
      case FrameDecoder::Next::kFrame:
        if (!take(frame)) return false;
    }
  }
  return true;
}

bool Connection::Impl::take(const Frame& frame) {
  if (phase_ == Phase::kProving) return prove(frame);
  std::vector<base::Fd> fds;
  if (!inbox_.takeFds(frame.fds, fds))
    return fail(protocolError("a frame's file descriptors did not come with it"));
  if (frame.skip) return true;
  if (phase_ == Phase::kMeeting) return meet(frame);
  if (phase_ == Phase::kAwaitingVerdict) return hearVerdict(frame);
  if (isHandshake(frame.type))
    return fail(protocolError("a frame of the handshake, which is over"));
  return tell([&] { user_.frame(frame.type, frame.payload, std::move(fds)); });
}

bool Connection::Impl::prove(const Frame& frame) {
  auto taken = frame.fds == 0 && !frame.skip
                   ? proof_->take(frame)
                   : Result<Handshake::Step>(protocolError("not a frame of the handshake"));
  if (!taken) {
    const auto deny = Handshake::deny(taken.error().code);
    if (frame.type != FrameType::kDeny) static_cast<void>(write(deny.type, deny.payload(), {}, {}));
    return fail(std::move(taken).error());
  }
  const Handshake::Step& step = *taken;
  if (step.sends && !say(step.send.type, step.send.payload())) return false;
  if (!step.proven) return true;
  useKeys();
  if (role_ == Role::kDialer) return true;
  base::Bytes hello;
  config_.mine.encode(hello);
  return say(FrameType::kHello, hello);
}

void Connection::Impl::useKeys() {
  const SessionKeys keys = proof_->keys();
  proof_.reset();
  common_ = keys.common;
  phase_ = Phase::kMeeting;
  inbox_.decoder().setLimit(kMaxHelloPayload);
  if (way_.is_unix) {
    inbox_.acceptFds();
    return;
  }
  const bool dialer = role_ == Role::kDialer;
  sealer_.useKey(dialer ? keys.to_listener : keys.to_dialer);
  inbox_.decoder().useKey(dialer ? keys.to_dialer : keys.to_listener);
}

bool Connection::Impl::meet(const Frame& frame) {
  if (frame.type != FrameType::kHello) return fail(protocolError("a frame before the hello"));
  auto hello = Hello::decode(frame.payload);
  if (!hello) return fail(hello.error());
  theirs_ = std::move(*hello);
  Result<std::uint64_t> verdict = std::uint64_t{0};
  if (!tell([&] { verdict = user_.judge(theirs_); })) return false;
  base::Bytes payload;
  if (role_ == Role::kDialer) {
    if (!verdict) return fail(verdict.error());
    config_.mine.encode(payload);
    phase_ = Phase::kAwaitingVerdict;
    return say(FrameType::kHello, payload);
  }
  if (!verdict) {
    RefuseMessage{verdict.error()}.encode(payload);
    return say(FrameType::kRefuse, payload) && fail(verdict.error());
  }
  payload = base::Writer().put(*verdict).take();
  return say(FrameType::kAccept, payload) && establish(*verdict);
}

bool Connection::Impl::hearVerdict(const Frame& frame) {
  if (frame.type == FrameType::kRefuse) {
    auto refusal = RefuseMessage::decode(frame.payload);
    return fail(refusal ? std::move(refusal->why) : std::move(refusal).error());
  }
  if (frame.type != FrameType::kAccept || frame.payload.size() != sizeof(std::uint64_t))
    return fail(protocolError("neither an acceptance nor a refusal"));
  return establish(base::loadLittle<std::uint64_t>(frame.payload.data()));
}

bool Connection::Impl::establish(std::uint64_t epoch) {
  poller_.forgetTimer(std::exchange(handshake_timer_, 0));
  inbox_.decoder().setLimit(kMaxFramePayload);
  phase_ = Phase::kReady;
  return tell([&] { user_.established(epoch); });
}

bool Connection::Impl::say(FrameType type, ByteSpan payload) {
  const Status said = write(type, payload, {}, {});
  return said ? true : fail(said.error());
}

Status Connection::Impl::write(FrameType type, ByteSpan head, ByteSpan body,
                               std::vector<base::Fd> fds) {
  const FrameSealer::Header header = sealer_.seal(type, head, body, fds.size());
  VIADUCT_CHECK(outbox_.push(socket_.get(), header, head, body, std::move(fds)));
  if (outbox_.unsent() > 0) listen();
  return Ok{};
}

Status Connection::Impl::send(FrameType type, ByteSpan head, ByteSpan body,
                              std::span<const int> fds) {
  if (send_error_) return *send_error_;
  if (phase_ == Phase::kClosed)
    return Error{
        .code = Code::kPeerLost, .operation = "send", .detail = "closed", .peer = way_.remote};
  if (phase_ != Phase::kReady || isHandshake(type) || !isKnown(type) ||
      head.size() + body.size() > kMaxFramePayload || fds.size() > kMaxFrameFds ||
      (!fds.empty() && !way_.is_unix))
    return Error{
        .operation = "send", .detail = "not a frame that can be sent", .peer = way_.remote};
  if (outbox_.unsent() > config_.max_unsent)
    return Error{.code = Code::kBusy,
                 .operation = "send",
                 .detail = fmt::format("{} bytes wait for the peer to read", outbox_.unsent()),
                 .peer = way_.remote};
  // Copied before the frame gets its number: a frame with a number has to go.
  std::vector<base::Fd> copies;
  for (const int fd : fds)
    if (!copies.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0)))
      return systemError(Code::kExhausted, "fcntl(F_DUPFD_CLOEXEC)", errno);
  const Status written = write(type, head, body, std::move(copies));
  if (!written) sendFailed(written.error());
  return written;
}

// What the peer said before it went may still be in the socket: the reading side closes.
void Connection::Impl::sendFailed(const Error& why) {
  send_error_ = why;
  if (send_error_->peer.empty()) send_error_->peer = way_.remote;
  ended_ = true;
  soon();
}

void Connection::Impl::flush() {
  if (const Status flushed = outbox_.flush(socket_.get()); !flushed) sendFailed(flushed.error());
}

void Connection::Impl::soon() {
  if (soon_timer_ == 0) soon_timer_ = poller_.at({}, [this] { onSoon(); });
}

void Connection::Impl::onSoon() {
  soon_timer_ = 0;
  if (!deliver()) return;
  if (!send_error_) {
    if (readTurn()) listen();
    return;
  }
  Inbox::Read got{.bytes = 1};
  for (int i = 0; i < kLastReads && got.bytes > 0; ++i)
    if (!readOnce(got)) return;
  fail(*send_error_);
}

void Connection::Impl::pause(bool paused) {
  if (phase_ == Phase::kClosed || paused == paused_) return;
  paused_ = paused;
  listen();
  if (!paused && inbox_.decoder().midFrame()) soon();
}

void Connection::Impl::readNow() {
  if (gone_ != nullptr || phase_ == Phase::kClosed || !mayRead()) return;
  if (inbox_.decoder().midFrame() && !deliver()) return;
  Inbox::Read got;
  if (mayRead() && readOnce(got)) listen();
}

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

Result<std::unique_ptr<Connection>> Connection::open(base::Fd socket, Role role,
                                                     ConnectionConfig config, base::Poller& poller,
                                                     ConnectionUser& user) {
  auto impl = std::make_unique<Impl>(std::move(socket), role, std::move(config), poller, user);
  VIADUCT_CHECK(impl->start());
  return std::unique_ptr<Connection>(new Connection(std::move(impl)));
}

Status Connection::send(FrameType type, std::span<const std::byte> payload,
                        std::span<const int> fds) {
  return impl_->send(type, payload, {}, fds);
}
Status Connection::sendParts(FrameType type, std::span<const std::byte> head,
                             std::span<const std::byte> body, std::span<const int> fds) {
  return impl_->send(type, head, body, fds);
}
void Connection::pauseReading(bool paused) { impl_->pause(paused); }
void Connection::readNow() { impl_->readNow(); }
Clock::time_point Connection::lastHeard() const { return impl_->lastHeard(); }
const Hello& Connection::theirs() const { return impl_->theirs(); }
bool Connection::isUnix() const { return impl_->isUnix(); }
int Connection::peerPid() const { return impl_->peerPid(); }
std::string Connection::remoteText() const { return impl_->remoteText(); }
Key Connection::deriveKey(std::string_view purpose) const { return impl_->derive(purpose); }
std::size_t Connection::unsent() const { return impl_->unsent(); }
std::uint64_t Connection::framesSent() const { return impl_->framesSent(); }
std::uint64_t Connection::framesHeard() const { return impl_->framesHeard(); }

}  // namespace viaduct::agent
