#include "backends/tcp/tcp_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "backends/tcp/socket.h"
#include "backends/tcp/tcp_backend.h"
#include "backends/tcp/tcp_rail.h"

namespace viaduct::tcp {

namespace {
using Phase = core::LinkState::Phase;
// The one message between links: my sockets are closed, and why.
constexpr std::uint8_t kGaveUp = 1;
// A first packet that is lost is sent again after a second.
constexpr std::chrono::milliseconds kLeastPatience{1500};
}  // namespace

TcpLink::TcpLink(TcpBackend& backend, core::LinkSeed seed, core::LinkHost& host)
    : backend_(backend), seed_(std::move(seed)), host_(host), id_(linkId(seed_.key)) {
  why_ = {.code = Code::kBusy, .operation = "tcp link", .detail = "its sockets are not open yet"};
  if (seed_.dialer) dial();
}

TcpLink::~TcpLink() { backend_.forget(*this); }

void TcpLink::dial() {
  const auto there = decodeEndpoints(seed_.address);
  const auto here = interfaces();
  const auto& sources = backend_.sources();
  missing_ = backend_.railCount();
  channels_.resize(missing_);
  dials_.resize(missing_);
  for (std::size_t i = 0; i < missing_; ++i) {
    const Source& from = sources[i / backend_.socketsPerSource()];
    Dial::Plan plan{
        .from = from,
        .to = there ? inOrder(*there, from, here, seed_.same_host, i / backend_.socketsPerSource())
                    : std::vector<Endpoint>{},
        .hello = {.link = id_,
                  .epoch = seed_.epoch,
                  .index = static_cast<std::uint32_t>(i),
                  .count = static_cast<std::uint32_t>(missing_)},
        .key = seed_.key,
        .limit = std::max(backend_.shared().detect, kLeastPatience)};
    dials_[i] =
        std::make_unique<Dial>(backend_.shared().poller, std::move(plan),
                               [this, i](Result<base::Fd> fd) { dialed(i, std::move(fd)); });
  }
}

void TcpLink::dialed(std::size_t index, Result<base::Fd> fd) {
  if (!fd) return fail(std::move(fd).error());
  if (auto adopted = adopt(index, *std::move(fd)); !adopted)
    return fail(std::move(adopted).error());
  readyWhenComplete();
}

Acceptor::Verdict TcpLink::offer(const Hello& hello, const Acceptor::HelloBytes& bytes,
                                 base::Fd& fd) {
  using enum Acceptor::Verdict;
  if (hello.epoch != seed_.epoch || !helloIsGenuine(bytes, seed_.key)) return kRefused;
  if (channels_.empty()) {
    channels_.resize(hello.count);
    missing_ = hello.count;
  }
  if (hello.count != channels_.size() || channels_[hello.index]) return kRefused;
  const auto welcome = encodeWelcome(hello, seed_.key);
  // A fresh socket has room for these few bytes.
  if (::send(fd.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(welcome.size()))
    return kRefused;
  if (auto adopted = adopt(hello.index, std::move(fd)); !adopted)
    fail(std::move(adopted).error());
  else
    readyWhenComplete();
  return kTaken;
}

Status TcpLink::adopt(std::size_t index, base::Fd fd) {
  Shared& shared = backend_.shared();
  tune(fd.get(), shared.detect, seed_.same_host || isLocal(fd.get(), interfaces()));
  auto channel =
      std::make_unique<Channel>(shared, *this, backend_.railOf(index), remote_, std::move(fd));
  VIADUCT_CHECK(channel->open());
  channels_[index] = std::move(channel);
  --missing_;
  return Ok{};
}

void TcpLink::readyWhenComplete() {
  if (missing_ > 0) return;
  state_ = {Phase::kReady, "socket"};
  host_.changed();
}

Channel* TcpLink::channelFor(std::size_t rail) {
  if (state_.phase != Phase::kReady) return nullptr;
  const std::size_t rails = backend_.railCount(), sockets = channels_.size();
  if (rails >= sockets) return channels_[rail % sockets].get();
  // Ours are every `rails`th, in turn.
  const std::size_t mine = (sockets - rail + rails - 1) / rails;
  return channels_[rail + (turn_++ % mine) * rails].get();
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
  return static_cast<const TcpRail&>(rail).index() < channels_.size();
}

void TcpLink::dropSockets() {
  dials_.clear();
  for (const auto& channel : channels_)
    if (channel) channel->reset();
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
  state_ = {Phase::kUnusable, why_.text()};
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

std::vector<Endpoint> TcpLink::peers() const {
  std::vector<Endpoint> out;
  for (const auto& channel : channels_)
    if (channel) out.push_back(remoteEndpoint(channel->fd()));
  return out;
}

void TcpLink::dropSlot(std::uint32_t slot) {
  for (const auto& channel : channels_)
    if (channel) channel->dropSlot(slot);
}

}  // namespace viaduct::tcp
