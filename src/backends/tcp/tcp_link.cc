#include "backends/tcp/tcp_link.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "backends/tcp/socket.h"
#include "backends/tcp/tcp_backend.h"
#include "backends/tcp/tcp_rail.h"
#include "base/log.h"

namespace viaduct::tcp {

using base::log;
using base::LogLevel;

namespace {
using Phase = core::LinkState::Phase;
// The messages between links. All my sockets are closed, and why.
constexpr std::uint8_t kGaveUp = 1;
// One of them is: index, of how many, which life of it, why.
constexpr std::uint8_t kSocketLost = 2;

// A first packet that is lost is sent again after a second.
constexpr std::chrono::milliseconds kLeastPatience{1500};
// A link is ready without those of its sockets that are still not open so long after the first.
constexpr std::chrono::milliseconds kLate{1500};
constexpr Duration kFirstRedial = std::chrono::milliseconds(250);
constexpr Duration kLastRedial = std::chrono::seconds(2);
// How often sockets are looked after.
constexpr std::chrono::milliseconds kLook{100};
}  // namespace

TcpLink::TcpLink(TcpBackend& backend, core::LinkSeed seed, core::LinkHost& host)
    : backend_(backend), seed_(std::move(seed)), host_(host), id_(linkId(seed_.key)) {
  why_ = {.code = Code::kBusy, .operation = "tcp link", .detail = "its sockets are not open yet"};
  if (!seed_.dialer) return;
  expect(backend_.railCount());
  for (std::size_t i = 0; i < sockets_.size(); ++i) dial(i);
}

TcpLink::~TcpLink() {
  dropSockets();
  backend_.forget(*this);
}

void TcpLink::expect(std::size_t count) {
  sockets_.resize(count);
  for (std::size_t i = 0; i < count; ++i) sockets_[i].rail = i % backend_.railCount();
}

void TcpLink::dial(std::size_t index) {
  Socket& socket = sockets_[index];
  const std::size_t place = index / backend_.socketsPerSource();
  const RailSource& from = backend_.sources()[place];
  std::vector<TcpAddress> there;
  if (auto said = decodeAddresses(seed_.address); said) there = *std::move(said);
  // One address, reached from any source, needs no order. Reading the interfaces takes longer than
  // connecting.
  const bool choice = from.address || there.size() > 1;
  const auto here = choice ? interfaces() : std::vector<LocalInterface>{};
  there = ownOf(from, there, backend_.sources(), here);
  Dial::Plan plan{.from = from,
                  .to = inOrder(there, from, here, seed_.same_host, place),
                  .hello = {.link = id_,
                            .epoch = seed_.epoch,
                            .index = static_cast<std::uint32_t>(index),
                            .count = static_cast<std::uint32_t>(sockets_.size()),
                            .life = socket.life},
                  .key = seed_.key,
                  .limit = std::max(backend_.shared().detect, kLeastPatience)};
  socket.dial =
      std::make_unique<Dial>(backend_.shared().poller, std::move(plan),
                             [this, index](Result<base::Fd> fd) { dialed(index, std::move(fd)); });
}

void TcpLink::dialed(std::size_t index, Result<base::Fd> fd) {
  sockets_[index].dial.reset();
  if (!fd) return lose(index, std::move(fd).error());
  if (auto adopted = adopt(index, *std::move(fd)); !adopted)
    return lose(index, std::move(adopted).error());
  opened(index);
}

Acceptor::HelloVerdict TcpLink::offer(const SocketHello& hello, const Acceptor::HelloBytes& bytes,
                                      base::Fd& fd) {
  using enum Acceptor::HelloVerdict;
  if (hello.epoch != seed_.epoch || !helloIsGenuine(bytes, seed_.key)) return kRefused;
  if (sockets_.empty()) expect(hello.count);
  if (hello.count != sockets_.size()) return kRefused;
  Socket& socket = sockets_[hello.index];
  if (socket.data_socket || socket.told || hello.life != socket.life) return kRefused;
  const auto welcome = encodeWelcome(hello, seed_.key);
  // A fresh socket has room for these few bytes.
  if (::send(fd.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(welcome.size()))
    return kRefused;
  socket.rail = backend_.railFor(hello.index, localAddress(fd.get()));
  if (auto adopted = adopt(hello.index, std::move(fd)); !adopted)
    lose(hello.index, std::move(adopted).error());
  else
    opened(hello.index);
  return kTaken;
}

Status TcpLink::adopt(std::size_t index, base::Fd fd) {
  TcpShared& shared = backend_.shared();
  tune(fd.get(), shared.detect, seed_.same_host || isLocal(fd.get()));
  TcpRail& rail = *backend_.tcpRails()[sockets_[index].rail];
  auto data_socket = std::make_unique<DataSocket>(shared, *this, rail, remote_, std::move(fd));
  VIADUCT_CHECK(data_socket->open());
  sockets_[index].data_socket = std::move(data_socket);
  return Ok{};
}

void TcpLink::opened(std::size_t index) {
  Socket& socket = sockets_[index];
  socket.patience = {};
  if (state_.phase == Phase::kOpening) return readyWhenComplete();
  log(LogLevel::kInfo, "peer {}: tcp rail {} is {}", seed_.peer,
      backend_.tcpRails()[socket.rail]->name(), socket.life > 0 ? "back" : "there");
}

std::size_t TcpLink::countOpen() const {
  return static_cast<std::size_t>(std::count_if(sockets_.begin(), sockets_.end(),
                                                [](const Socket& s) { return !!s.data_socket; }));
}

// With all that are not known to be missing; or some time after the first.
void TcpLink::readyWhenComplete() {
  const bool complete = std::all_of(sockets_.begin(), sockets_.end(), [](const Socket& socket) {
    return socket.data_socket || socket.life > 0 || socket.told;
  });
  if (complete && countOpen() > 0) return makeReady();
  if (late_timer_ == 0)
    late_timer_ = backend_.shared().poller.at(Clock::now() + kLate, [this] {
      late_timer_ = 0;
      if (state_.phase == Phase::kOpening && countOpen() > 0) makeReady();
    });
}

void TcpLink::makeReady() {
  state_ = {Phase::kReady, "socket"};
  if (const auto open = countOpen(); open < sockets_.size())
    log(LogLevel::kWarning, "peer {}: tcp starts with {} of {} rails: {}", seed_.peer, open,
        sockets_.size(), why_.text());
  host_.changed();
}

bool TcpLink::servesOwn(std::size_t rail, bool open) const {
  return std::any_of(sockets_.begin(), sockets_.end(), [&](const Socket& socket) {
    return socket.rail == rail && (socket.data_socket || !open);
  });
}

DataSocket* TcpLink::socketFor(std::size_t rail) {
  if (state_.phase != Phase::kReady) return nullptr;
  // Its own, in turn; where it never had one, those of other rails.
  const bool own = servesOwn(rail, false);
  const std::size_t count = sockets_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (own ? turn_ + i : rail + i) % count;
    Socket& socket = sockets_[at];
    if (!socket.data_socket || (own && socket.rail != rail)) continue;
    if (own) turn_ = at + 1;
    return socket.data_socket.get();
  }
  return nullptr;
}

void TcpLink::addPin(const core::RemotePin& pin) {
  base::Reader in(pin.key);
  const auto generation = in.get<std::uint32_t>();
  if (in.finished() && pin.info.kind == MemoryKind::kHost) remote_.add(pin.info.slot, generation);
}

std::optional<std::string_view> TcpLink::reaches(OpKind, std::uint32_t local_pin,
                                                 std::uint32_t remote_pin) const {
  const bool both = backend_.shared().pins.live(local_pin) && remote_.generation(remote_pin) != 0;
  if (state_.phase != Phase::kReady || !both) return std::nullopt;
  return "socket";
}

bool TcpLink::servedBy(const core::Rail& rail) const {
  return servesOwn(static_cast<const TcpRail&>(rail).index(), true);
}

void TcpLink::lost(const DataSocket& data_socket) {
  if (data_socket.endsLink()) return fail(data_socket.lost().value_or(Error{}));
  for (std::size_t i = 0; i < sockets_.size(); ++i)
    if (sockets_[i].data_socket.get() == &data_socket)
      return lose(i, data_socket.lost().value_or(Error{}));
}

// Its jobs wait until the peer has closed its end as well: bytes of ours may still be on the way
// into the peer's memory.
void TcpLink::lose(std::size_t index, Error why) {
  if (state_.phase == Phase::kUnusable) return;
  Socket& socket = sockets_[index];
  const bool news = state_.phase == Phase::kReady && (socket.data_socket || socket.life == 0);
  why.peer = seed_.peer;
  why_ = std::move(why);
  if (socket.data_socket)
    for (TcpRail* rail : backend_.tcpRails())
      rail->strand(*socket.data_socket, static_cast<std::uint32_t>(index), socket.life, why_);
  socket.data_socket.reset();
  socket.dial.reset();
  socket.told = true;
  const bool more = std::any_of(sockets_.begin(), sockets_.end(), [](const Socket& other) {
    return !other.data_socket && !other.told && other.life == 0;
  });
  if (countOpen() == 0 && (state_.phase == Phase::kReady || !more)) return fail(why_);
  if (news) socket.out = why_.text();
  base::Writer out;
  out.put(kSocketLost).put(static_cast<std::uint32_t>(index));
  out.put(static_cast<std::uint32_t>(sockets_.size())).put(socket.life).text(why_.text());
  static_cast<void>(host_.send(out.bytes()));  // else the session is ending, and says so itself
  if (socket.heard) settle(index);
  if (state_.phase == Phase::kOpening) readyWhenComplete();
}

void TcpLink::peerLost(std::size_t index, std::uint32_t life, const std::string& said) {
  Socket& socket = sockets_[index];
  if (life != socket.life || state_.phase == Phase::kUnusable) return;
  socket.heard = true;
  if (socket.told) return settle(index);
  lose(index, {.code = Code::kPeerLost, .operation = "tcp link", .detail = "the peer: " + said});
}

// Neither end has the socket any more.
void TcpLink::settle(std::size_t index) {
  Socket& socket = sockets_[index];
  for (TcpRail* rail : backend_.tcpRails())
    rail->release(*this, static_cast<std::uint32_t>(index), socket.life);
  ++socket.life;
  socket.told = socket.heard = false;
  // Not before: a peer that goes loses all of them, and that is no news of rails.
  if (const std::string why = std::exchange(socket.out, {}); !why.empty())
    log(LogLevel::kWarning, "peer {}: tcp rail {} has failed, others continue: {}", seed_.peer,
        backend_.tcpRails()[socket.rail]->name(), why);
  if (!seed_.dialer) return;
  // A peer may say of a life that it is over before that has begun.
  if (socket.redial != 0) backend_.shared().poller.forgetTimer(std::exchange(socket.redial, 0));
  socket.patience = std::clamp<Duration>(socket.patience * 2, kFirstRedial, kLastRedial);
  socket.redial = backend_.shared().poller.at(Clock::now() + socket.patience, [this, index] {
    sockets_[index].redial = 0;
    dial(index);
  });
}

void TcpLink::watchAgain() {
  watch_timer_ = backend_.shared().poller.at(Clock::now() + kLook, [this] {
    watch_timer_ = 0;
    look();
  });
}

void TcpLink::look() {
  bool more = false;
  Duration least = Duration::max() / 2;
  const auto now = Clock::now();
  const auto alive = [](const Socket& socket) {
    return socket.data_socket && !socket.data_socket->lost();
  };
  for (const Socket& socket : sockets_) {
    if (!alive(socket)) continue;
    if (socket.data_socket->measureSilence(now)) more = true;
    least = std::min(least, socket.data_socket->silence());
  }
  for (const Socket& socket : sockets_)
    if (alive(socket)) socket.data_socket->judge(least);
  if (more) watch();
}

void TcpLink::dropSockets() {
  base::Poller& poller = backend_.shared().poller;
  for (base::Poller::Id* const timer : {&late_timer_, &watch_timer_})
    if (*timer != 0) poller.forgetTimer(std::exchange(*timer, 0));
  for (Socket& socket : sockets_) {
    if (socket.redial != 0) poller.forgetTimer(std::exchange(socket.redial, 0));
    socket.dial.reset();
    if (socket.data_socket) socket.data_socket->reset();
  }
}

void TcpLink::tellPeer() {
  base::Writer out;
  out.put(kGaveUp).text(why_.text());
  static_cast<void>(host_.send(out.bytes()));  // else the session is ending, and says so itself
}

void TcpLink::fail(Error why) {
  if (state_.phase == Phase::kUnusable) return;
  why.peer = seed_.peer;
  why_ = std::move(why);
  state_ = {Phase::kUnusable, why_.text(),
            why_.code == Code::kExhausted || backend_.lackedSince(begun_)};
  dropSockets();
  // Bytes of ours may still be on the way into the peer's memory: its jobs end when it says that
  // it has closed its sockets as well, or with the session.
  for (TcpRail* rail : backend_.tcpRails()) rail->strand(*this, why_);
  if (peer_gave_up_)
    for (TcpRail* rail : backend_.tcpRails()) rail->release(*this);
  tellPeer();
  host_.changed();
}

void TcpLink::receive(std::span<const std::byte> message, std::vector<core::Fd>) {
  base::Reader in(message);
  const auto kind = in.get<std::uint8_t>();
  if (kind == kSocketLost) {
    const auto index = in.get<std::uint32_t>(), count = in.get<std::uint32_t>();
    const auto life = in.get<std::uint32_t>();
    const std::string said = in.text();
    if (!in.finished() || index >= count || count > kMaxSockets) return;
    if (sockets_.empty()) expect(count);
    if (count == sockets_.size()) peerLost(index, life, said);
    return;
  }
  const std::string said = in.text();
  if (!in.finished() || kind != kGaveUp || std::exchange(peer_gave_up_, true)) return;
  if (state_.phase != Phase::kUnusable)
    return fail({.code = Code::kPeerLost, .operation = "tcp link", .detail = "the peer: " + said});
  for (TcpRail* rail : backend_.tcpRails()) rail->release(*this);
}

void TcpLink::close(core::Completions& out) {
  if (state_.phase != Phase::kUnusable) {
    why_ = {.code = Code::kPeerLost,
            .operation = "tcp link",
            .detail = "the session has ended",
            .peer = seed_.peer};
    state_ = {Phase::kUnusable, why_.text()};
  }
  dropSockets();
  for (TcpRail* rail : backend_.tcpRails()) {
    rail->strand(*this, why_);
    rail->take(*this, out);
  }
}

std::vector<TcpAddress> TcpLink::peers() const {
  std::vector<TcpAddress> out;
  for (const Socket& socket : sockets_)
    if (socket.data_socket) out.push_back(remoteAddress(socket.data_socket->fd()));
  return out;
}

void TcpLink::dropSlot(std::uint32_t slot) {
  for (const Socket& socket : sockets_)
    if (socket.data_socket) socket.data_socket->dropSlot(slot);
}

}  // namespace viaduct::tcp
