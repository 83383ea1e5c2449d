#include "support/lying_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/session/messages.h"
#include "agent/session/note_ring.h"
#include "agent/session/socket_facts.h"
#include "base/net/address.h"
#include "base/random.h"

namespace viaduct::testing {

using namespace std::chrono_literals;
using agent::Frame, agent::FrameDecoder, agent::FrameRule, agent::FrameType, agent::Hello,
    agent::typeOf;
using base::Bytes, base::bytesOf, base::Key;

namespace {

Error refused(const std::string& what) {
  return {.code = Code::kPeerLost, .operation = "lying peer", .detail = what};
}

Result<base::SocketAddress> addressOf(const std::string& where) {
  constexpr std::string_view kUnix = "unix:@";
  if (where.starts_with(kUnix)) return base::unixAddress(where.substr(kUnix.size()));
  VIADUCT_TRY(const auto host, base::parseHostPort(where));
  VIADUCT_TRY(const auto all, base::resolve(host));
  return all.front();
}

Hello helloOf(const std::string& name, const Hello& theirs) {
  Hello hello{.name = name, .boot = theirs.boot, .detect_ms = theirs.detect_ms};
  Key random{};
  static_cast<void>(base::fillSecret(random));
  std::copy_n(random.begin(), hello.agent.size(), hello.agent.begin());
  std::copy_n(random.begin() + 16, hello.process.size(), hello.process.begin());
  hello.backends = theirs.backends;  // it has every backend, with addresses of nobody else
  return hello;
}

}  // namespace

Result<LyingPeer> LyingPeer::prove(const std::string& where, const Key& secret, Bytes claim) {
  VIADUCT_TRY(const auto to, addressOf(where));
  base::Fd socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), to.get(), to.size) != 0)
    return systemError(Code::kPeerLost, "connect", errno);
  VIADUCT_CHECK(base::tuneSocket(socket.get()));
  VIADUCT_TRY(const auto facts, agent::socketFactsOf(socket.get(), true));
  VIADUCT_TRY(auto proof,
              base::Handshake::dial(secret, agent::kWireVersion, facts.binding, std::move(claim)));
  LyingPeer liar(std::move(socket), std::move(proof), facts.is_unix);
  VIADUCT_CHECK(liar.shake());
  return liar;
}

Status LyingPeer::shake() {
  send(FrameType::kOpen, proof_.open());
  VIADUCT_TRY(const Frame challenge, next());
  VIADUCT_TRY(const auto step,
              proof_.take(base::Handshake::Stage::kChallenge, challenge.payload, challenge.minor));
  send(FrameType::kProof, step.reply);
  VIADUCT_TRY(const Frame confirm, next());
  VIADUCT_CHECK(proof_.take(base::Handshake::Stage::kConfirm, confirm.payload, confirm.minor));
  reader_.decoder().setLimit(agent::kMaxHelloPayload);
  if (is_unix_) {
    reader_.acceptFds();
  } else {
    VIADUCT_CHECK(sealer_.useKey(proof_.sendingKey()));
    VIADUCT_CHECK(reader_.decoder().useKey(proof_.receivingKey()));
  }
  VIADUCT_TRY(const Frame hello, next());
  VIADUCT_TRY(theirs_, base::decode<Hello>(hello.payload));
  return Ok{};
}

Result<LyingPeer> LyingPeer::meet(const std::string& where, const Key& secret,
                                  const std::string& name, Bytes claim) {
  VIADUCT_TRY(auto liar, prove(where, secret, std::move(claim)));
  VIADUCT_CHECK(liar.introduce(name));
  return liar;
}

Status LyingPeer::introduce(const std::string& name,
                            const std::function<void(agent::Hello&)>& change) {
  agent::Hello hello = helloOf(name, theirs_);
  change(hello);
  send(FrameType::kHello, base::encode(hello));
  VIADUCT_TRY(const Frame verdict, next());
  if (typeOf(verdict) == FrameType::kRefuse) {
    VIADUCT_TRY(const auto refusal, base::decode<agent::RefuseMessage>(verdict.payload));
    refusal_ = refusal.why;
  }
  if (typeOf(verdict) != FrameType::kAccept) return refused("the hello was refused");
  reader_.decoder().setLimit(agent::kMaxFramePayload);
  return Ok{};
}

// Waits for the next frame.
Result<Frame> LyingPeer::next() {
  Frame frame;
  for (;;) {
    switch (reader_.decoder().next(frame)) {
      case FrameDecoder::Next::kFrame:
        return frame;
      case FrameDecoder::Next::kBroken:
        return reader_.decoder().error();
      case FrameDecoder::Next::kMore:
        break;
    }
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 10'000) != 1) return refused("no answer");
    VIADUCT_TRY(const auto read, reader_.read(socket_.get()));
    if (read.ended) return refused("the connection was closed");
  }
}

bool LyingPeer::listen(std::chrono::milliseconds wait) {
  while (!closed_) {
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(wait.count())) != 1) break;
    const auto read = reader_.read(socket_.get());
    closed_ = !read || read->ended;
    Frame frame;
    while (!closed_ && reader_.decoder().next(frame) == FrameDecoder::Next::kFrame) takeRing(frame);
  }
  return !closed_;
}

void LyingPeer::takeRing(const Frame& frame) {
  std::vector<base::Fd> fds;
  if (!reader_.takeFds(frame.fds, fds)) return;
  if (typeOf(frame) == FrameType::kNoteRing) ring_ = std::move(fds);
}

bool LyingPeer::isExpelled() {
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (listen(10ms))
    if (std::chrono::steady_clock::now() > until) return false;
  return true;
}

bool LyingPeer::send(FrameType type, std::span<const std::byte> payload, std::span<const int> fds) {
  Bytes bytes(payload.begin(), payload.end());
  const auto header = headerOf(type, bytes, fds.size());
  return sendBytes(header, fds) && sendBytes(bytes, {});
}

// Encrypts the payload, if the session does.
agent::FrameSealer::Header LyingPeer::headerOf(FrameType type, std::span<std::byte> payload,
                                               std::size_t fds) {
  return sealer_.encrypts() ? sealer_.encrypt(agent::numberOf(type), payload, fds).value()
                            : sealer_.seal(agent::numberOf(type), payload, {}, fds);
}

void LyingPeer::sync() {
  if (!std::exchange(synced_, true)) send(FrameType::kSynced, {});
}

bool LyingPeer::announce(FrameType type, std::size_t bytes) {
  auto header = headerOf(type, {}, 0);
  base::storeLittle(&header[8], static_cast<std::uint32_t>(bytes));
  return sendBytes(header, {});
}

// Also reads while the other end does not read, so that neither end waits for the other for ever.
bool LyingPeer::sendBytes(std::span<const std::byte> bytes, std::span<const int> fds) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(64 * sizeof(int))> control{};
  for (int quiet = 0; !bytes.empty() && !closed_ && quiet < 100;) {
    iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      *head = {.cmsg_len = CMSG_LEN(fds.size_bytes()),
               .cmsg_level = SOL_SOCKET,
               .cmsg_type = SCM_RIGHTS};
      std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
    }
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      fds = {};
      quiet = 0;
    } else if (errno != EAGAIN) {
      closed_ = true;
    } else {
      pollfd ready{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, 10);
      listen();
      ++quiet;
    }
  }
  return bytes.empty() && !closed_;
}

void LyingPeer::ring(std::span<const std::byte> note) {
  listen(1ms);
  if (ring_.size() != 2) return;
  auto ring = agent::RingSender::map(ring_[0], base::Fd(::dup(ring_[1].get())));
  if (ring) ring->put(0, note);
}

}  // namespace viaduct::testing
