#include "agent/session/connection.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "agent/session/frame_rules.h"

namespace viaduct::agent {

namespace {

// The limits of one turn of reading, so that one busy peer does not delay the others: the number of
// reads, and microseconds. A frame counts for FrameRule::cost_us, and its bytes for more.
constexpr int kReadsPerTurn = 8;
constexpr int kTimePerTurn = 2000;
constexpr std::size_t kBytesPerMicrosecond = 1024;
// Limits the reads of frames that a peer sent before its connection ended.
constexpr int kLastReads = 256;

}  // namespace

Status Connection::start() {
  if (role_ == Role::kDialer) {
    VIADUCT_TRY(hello_, ourHello());
  }
  VIADUCT_TRY(socket_facts_, socketFactsOf(socket_.get(), role_ == Role::kDialer));
  VIADUCT_TRY(proof_,
              role_ == Role::kDialer
                  ? base::Handshake::dial(config_.secret, kWireVersion, socket_facts_.binding,
                                          config_.claim)
                  : base::Handshake::listen(config_.secret, kWireVersion, socket_facts_.binding,
                                            config_.secret_of_claim));
  if (role_ == Role::kDialer) VIADUCT_CHECK(write(FrameType::kOpen, proof_->open(), {}, {}));
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

Result<base::Bytes> Connection::ourHello() {
  const Hello mine = config_.mine();
  last_epoch_ = mine.last_epoch;
  base::Bytes hello = base::encode(mine);
  if (hello.size() <= kMaxHelloPayload && base::decode<Hello>(hello)) return hello;
  return Error{.operation = "connection",
               .detail = "this agent's hello exceeds the protocol's limits",
               .remedy = "use a shorter agent name, or fewer addresses or backends"};
}

void Connection::leavePoller() {
  poller_.forget(std::exchange(watch_, 0));
  poller_.forgetTimer(std::exchange(handshake_timer_, 0));
  poller_.forgetTimer(std::exchange(soon_timer_, 0));
}

void Connection::listen() {
  const bool writes = writer_.unsent() > 0 && !send_error_;
  const std::uint32_t wanted = (mayRead() ? EPOLLIN : 0U) | EPOLLRDHUP | (writes ? EPOLLOUT : 0U);
  if (watch_ == 0 || wanted == watched_) return;
  watched_ = wanted;
  if (const Status changed = poller_.change(watch_, wanted); !changed) sendFailed(changed.error());
}

bool Connection::fail(Error why) {
  leavePoller();
  socket_.reset();
  phase_ = ConnectionPhase::kClosed;
  if (why.peer.empty()) why.peer = theirs_.name.empty() ? socket_facts_.remote : theirs_.name;
  tell([&] { user_.closed(why); });
  return false;
}

Error Connection::protocolError(std::string detail) const {
  return {.code = Code::kProtocol, .operation = "receive", .detail = std::move(detail)};
}

void Connection::onEvents(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) flush();
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) ended_ = true;
  const bool reads = (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0;
  if (reads && soon_timer_ == 0 && !readTurn()) return;  // the timer's turn comes in this round
  listen();
}

// Delivers the frames that the last turn has left, and reads.
bool Connection::readTurn() {
  turn_left_ = kTimePerTurn;
  if (!deliver()) return false;
  FrameReader::Read got{.more = true};
  for (int i = 0; i < kReadsPerTurn && got.more && mayRead() && turn_left_ > 0; ++i)
    if (!readOnce(got)) return false;
  if (turn_left_ == 0) soon();
  return true;
}

bool Connection::readOnce(FrameReader::Read& got) {
  auto read = reader_.read(socket_.get());
  if (!read) return fail(std::move(read).error());
  got = *read;
  if (got.ended)
    return fail({.code = Code::kPeerLost,
                 .operation = phase_ == ConnectionPhase::kReady ? "receive" : "handshake",
                 .detail = reader_.decoder().midFrame()
                               ? "the peer closed the connection in the middle of a frame"
                               : "the peer closed the connection"});
  if (got.bytes == 0) return true;
  last_heard_ = poller_.now();
  return deliver();
}

bool Connection::deliver() {
  Frame frame;
  while (mayRead() && turn_left_ > 0) {
    switch (reader_.decoder().next(frame)) {
      case FrameDecoder::Next::kMore:
        return true;
      case FrameDecoder::Next::kBroken:
        // An end that can decode a deny frame learns this end's version, and that it has closed.
        if (phase_ == ConnectionPhase::kProving && !send_error_) deny(Code::kProtocol);
        return fail(reader_.decoder().error());
      case FrameDecoder::Next::kFrame:
        if (!take(frame)) return false;
    }
  }
  return true;
}

// The error if a frame of this type may not come in this phase.
std::optional<Error> Connection::outOfTurn(const Frame& frame) const {
  const FrameRule* const rule = ruleOf(typeOf(frame));
  const bool newer = rule == nullptr && phase_ != ConnectionPhase::kProving;  // it is skipped
  static_assert(static_cast<int>(ConnectionPhase::kReady) ==
                static_cast<int>(FrameStage::kSession));
  const auto stage = static_cast<FrameStage>(phase_);
  if (newer || (rule != nullptr && std::min(rule->stage, FrameStage::kSession) == stage))
    return std::nullopt;
  constexpr std::array<std::string_view, 4> kDuring{
      "before the proofs are exchanged", "when the hello is due", "when the verdict is due",
      "after the handshake"};
  return brokenRule(fmt::format("a frame '{}' {}", rule == nullptr ? "unknown" : rule->name,
                                kDuring[static_cast<std::size_t>(phase_)]));
}

bool Connection::take(const Frame& frame) {
  if (auto wrong = outOfTurn(frame)) {
    if (phase_ == ConnectionPhase::kProving) deny(Code::kProtocol);
    return fail(*std::move(wrong));
  }
  const FrameRule* const rule = ruleOf(typeOf(frame));
  spend((rule == nullptr ? 1 : rule->cost_us) +
        static_cast<int>(frame.payload.size() / kBytesPerMicrosecond));
  if (phase_ == ConnectionPhase::kProving) return prove(frame);
  std::vector<base::Fd> fds;
  if (!reader_.takeFds(frame.fds, fds))
    return fail(protocolError("a frame arrived without its file descriptors"));
  if (phase_ == ConnectionPhase::kReady && isNumbered(typeOf(frame))) ++numbered_heard_;
  if (frame.skip) return true;
  if (phase_ == ConnectionPhase::kMeeting) return meet(frame);
  if (phase_ == ConnectionPhase::kAwaitingVerdict) return hearVerdict(frame);
  return tell([&] { user_.frame(typeOf(frame), frame.payload, std::move(fds)); });
}

bool Connection::say(FrameType type, ByteSpan payload) {
  const Status said = write(type, payload, {}, {});
  return said ? true : fail(said.error());
}

Status Connection::write(FrameType type, ByteSpan head, ByteSpan body, std::vector<base::Fd> fds) {
  VIADUCT_CHECK(writer_.write(socket_.get(), numberOf(type), head, body, std::move(fds)));
  if (writer_.unsent() > 0) listen();
  return Ok{};
}

Status Connection::sendParts(FrameType type, ByteSpan head, ByteSpan body,
                             std::span<const int> fds) {
  if (send_error_) return *send_error_;
  if (phase_ == ConnectionPhase::kClosed)
    return Error{.code = Code::kPeerLost,
                 .operation = "send",
                 .detail = "closed",
                 .peer = socket_facts_.remote};
  if (phase_ != ConnectionPhase::kReady || isHandshake(type) || !isKnown(type) ||
      head.size() + body.size() > kMaxFramePayload || fds.size() > kMaxFrameFds ||
      (!fds.empty() && !socket_facts_.is_unix))
    return Error{.operation = "send",
                 .detail = "a frame of this type or size cannot be sent",
                 .peer = socket_facts_.remote};
  const std::size_t most = config_.max_unsent * (type == FrameType::kNote ? 1 : 2);
  if (writer_.unsent() > most)
    return Error{.code = Code::kBusy,
                 .operation = "send",
                 .detail = fmt::format("{} bytes wait for the peer to read", writer_.unsent()),
                 .peer = socket_facts_.remote};
  // The fds are copied before the frame gets its number, because a numbered frame has to be sent.
  std::vector<base::Fd> copies;
  for (const int fd : fds)
    if (!copies.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0)))
      return systemError(Code::kExhausted, "fcntl(F_DUPFD_CLOEXEC)", errno);
  const Status written = write(type, head, body, std::move(copies));
  if (!written) sendFailed(written.error());
  return written;
}

// The peer's last frames may still be in the socket, so the reading side closes the connection.
void Connection::sendFailed(const Error& why) {
  send_error_ = why;
  if (send_error_->peer.empty()) send_error_->peer = socket_facts_.remote;
  ended_ = true;
  soon();
}

void Connection::flush() {
  if (const Status flushed = writer_.flush(socket_.get()); !flushed) sendFailed(flushed.error());
}

// Waits for the next round of the poller: in this round the peer has had its turn.
void Connection::soon() {
  if (soon_timer_ == 0) soon_timer_ = poller_.at(poller_.now(), [this] { onSoon(); });
}

void Connection::onSoon() {
  soon_timer_ = 0;
  if (send_error_) return readLast(*send_error_);
  if (readTurn()) listen();
}

// Reads what the peer sent before the socket failed, and closes.
void Connection::readLast(const Error& why) {
  turn_left_ = kTimePerTurn;
  if (!deliver()) return;
  FrameReader::Read got{.bytes = 1};
  for (; last_reads_ < kLastReads && got.bytes > 0 && turn_left_ > 0; ++last_reads_)
    if (!readOnce(got)) return;
  if (turn_left_ == 0 && last_reads_ < kLastReads) return soon();
  fail(why);
}

void Connection::pauseReading(bool paused) {
  if (phase_ == ConnectionPhase::kClosed || paused == paused_) return;
  paused_ = paused;
  listen();
  if (!paused && reader_.decoder().midFrame()) soon();
}

void Connection::readNow() {
  if (gone_ != nullptr || phase_ == ConnectionPhase::kClosed || !mayRead()) return;
  turn_left_ = kTimePerTurn;
  if (reader_.decoder().midFrame() && !deliver()) return;
  FrameReader::Read got;
  if (mayRead() && turn_left_ > 0 && !readOnce(got)) return;
  if (turn_left_ == 0) soon();
  listen();
}

Result<std::unique_ptr<Connection>> Connection::open(base::Fd socket, Role role,
                                                     ConnectionConfig config, base::Poller& poller,
                                                     ConnectionUser& user) {
  std::unique_ptr<Connection> connection(
      new Connection(std::move(socket), role, std::move(config), poller, user));
  VIADUCT_CHECK(connection->start());
  return connection;
}

}  // namespace viaduct::agent
