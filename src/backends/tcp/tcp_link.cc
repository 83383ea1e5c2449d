#include "backends/tcp/tcp_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "backends/tcp/socket.h"
#include "backends/tcp/tcp_backend.h"
#include "base/inner_error.h"

namespace viaduct::tcp {
namespace {

using move::ShutReason;
// The two messages between the ends of a link. kGaveUp has a reason: all sockets of the sender are
// closed.
constexpr std::uint8_t kGaveUp = 1;
// One socket of the sender is closed. Fields: its index, the number of sockets, its life, the
// reason.
constexpr std::uint8_t kSocketLost = 2;

// The shortest time limit for dialing. TCP sends a lost first packet again after one second.
constexpr std::chrono::milliseconds kLeastPatience{1500};
// This long after the first socket has opened, the link is ready without the other sockets.
constexpr std::chrono::milliseconds kLate{1500};
// The interval of the checks for silent sockets.
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

TcpLink::TcpLink(TcpBackend& backend, core::LinkSeed link_seed, core::LinkHost& host)
    : ChannelLink(backend.linkContext(), std::move(link_seed), host),
      backend_(backend),
      id_(linkId(seed().key)) {
  if (auto met = meet(); !met) refuse(std::move(met).error());
  if (refusal_ || !seed().dialer) return;
  expect(backend_.rails().size());
  for (const auto& channel : channels()) openNext(*channel);
}

// Reads the peer's address, and agrees on the protection of the sockets.
Status TcpLink::meet() {
  VIADUCT_TRY(theirs_, decodeAddress(seed().address));
  VIADUCT_TRY(protection_, agree(backend_.shared().offer, theirs_.offer, seed().same_host));
  return Ok{};
}

// The link fails from a handler of the poller, because its host does not know it yet.
void TcpLink::refuse(Error why) {
  refusal_ = std::move(why);
  refusal_timer_ = context().poller.at(context().poller.now(), [this] {
    refusal_timer_ = 0;
    fail(*refusal_);
  });
}

TcpLink::~TcpLink() {
  end();
  if (refusal_timer_ != 0) context().poller.forgetTimer(refusal_timer_);
  if (watch_timer_ != 0) context().poller.forgetTimer(watch_timer_);
  backend_.forget(*this);
}

void TcpLink::expect(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    add(std::make_unique<TcpChannel>(*this,
                                     move::Channel::Position{.index = static_cast<std::uint32_t>(i),
                                                             .rail = i % backend_.rails().size()},
                                     newLife(0)));
}

Status TcpLink::open(move::Channel& channel) {
  const std::uint32_t index = channel.index();
  const std::size_t place = index / backend_.socketsPerSource();
  const RailSource& from = backend_.sources()[place];
  std::vector<base::SocketAddress> there = theirs_.addresses;
  // A single address without a source needs no order. The interfaces are read only if needed,
  // because that takes longer than connecting.
  const bool choice = from.address || there.size() > 1;
  const auto here = choice ? interfaces() : std::vector<LocalInterface>{};
  there = ownOf(from, there, backend_.sources(), here);
  auto& mine = static_cast<TcpChannel&>(channel);
  mine.dial(context().poller,
            {.from = from,
             .to = inOrder(there, from, here, seed().same_host, place),
             .hello = helloOf(channel),
             .key = seed().key,
             .limit = std::max(backend_.shared().detect, kLeastPatience)},
            [this, &mine](Result<base::Fd> fd) { dialed(mine, std::move(fd)); });
  return Ok{};
}

SocketHello TcpLink::helloOf(const move::Channel& channel) const {
  return {.link = id_,
          .epoch = seed().epoch,
          .index = channel.index(),
          .count = static_cast<std::uint32_t>(channels().size()),
          .life = channel.life().number()};
}

void TcpLink::dialed(TcpChannel& channel, Result<base::Fd> fd) {
  if (!fd) return strike(channel, std::move(fd).error());
  adopt(channel, *std::move(fd));
}

Acceptor::HelloVerdict TcpLink::offer(const SocketHello& hello, const Acceptor::HelloBytes& bytes,
                                      base::Fd& fd) {
  using enum Acceptor::HelloVerdict;
  if (refusal_ || hello.epoch != seed().epoch || !helloIsGenuine(bytes, seed().key))
    return kRefused;
  if (channels().empty()) expect(hello.count);
  move::Channel* const channel = find(hello.index, hello.life);
  if (hello.count != channels().size() || channel == nullptr || !channel->life().atRest())
    return kRefused;
  const auto welcome = encodeWelcome(hello, seed().key);
  // A new socket has room for these few bytes, so one send() is enough.
  if (::send(fd.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(welcome.size()))
    return kRefused;
  const auto here = base::localAddress(fd.get());
  if (!here) return kRefused;
  moveTo(*channel, backend_.railFor(hello.index, *here));
  channel->life().on(move::ChannelEvent::kOpen);
  adopt(static_cast<TcpChannel&>(*channel), std::move(fd));
  return kTaken;
}

void TcpLink::adopt(TcpChannel& channel, base::Fd fd) {
  tune(fd.get(), backend_.shared().detect, seed().same_host || isLocal(fd.get()));
  auto keys = keysOf(protection_, seed().key, helloOf(channel), seed().dialer, base::kBlocksPerKey,
                     &backend_.sealingTime(channel.rail()));
  if (!keys) return fail(std::move(keys).error());
  if (auto adopted = channel.adopt(backend_.shared(), remote_, *seed().rights, std::move(fd),
                                   protection_, *std::move(keys));
      !adopted)
    return strike(channel, std::move(adopted).error());
  opened(channel);
}

void TcpLink::opened(move::Channel& channel) {
  ChannelLink::opened(channel);
  if (state().phase == core::LinkState::Phase::kOpening) readyBy(context().poller.now() + kLate);
}

void TcpLink::addPin(const core::RemotePin& pin) {
  base::Reader in(pin.key);
  const auto generation = in.get<std::uint32_t>();
  if (in.finished() && pin.info.kind == MemoryKind::kHost) remote_.add(pin.info.slot, generation);
}

std::optional<std::string_view> TcpLink::reaches(OpKind, std::uint32_t local_pin,
                                                 std::uint32_t remote_pin) const {
  const bool both = backend_.shared().pins.live(local_pin) && remote_.generation(remote_pin) != 0;
  if (!ready() || !both) return std::nullopt;
  return way();
}

std::optional<Privacy> TcpLink::protection() const {
  if (seed().same_host && protection_.level == Privacy::kOff) return std::nullopt;
  return protection_.level;
}

void TcpLink::broke(move::Channel& channel) {
  if (static_cast<TcpChannel&>(channel).socket()->endsLink()) return fail(channel.why());
  strike(channel, channel.why());
}

// Silence is judged by comparison of sockets, so a link with one socket is not watched.
bool TcpLink::wantsWatch() { return channels().size() > 1 && !watched_.exchange(true); }

void TcpLink::watch() {
  watch_timer_ = context().poller.at(context().poller.now() + kLook, [this] {
    watch_timer_ = 0;
    watched_ = false;
    look();
  });
}

void TcpLink::look() {
  bool more = false;
  Duration least = Duration::max() / 2;
  const auto now = context().poller.now();
  for (const auto& channel : channels()) {
    if (!channel->up()) continue;
    if (of(channel).socket()->measureSilence(now)) more = true;
    least = std::min(least, of(channel).socket()->silence());
  }
  for (const auto& channel : channels())
    if (channel->up()) of(channel).socket()->judge(least);
  if (more && wantsWatch()) watch();
}

bool TcpLink::lacked() const { return backend_.lackedSince(begun_); }

void TcpLink::tellShut(const move::Channel* channel, ShutReason, const Error& why) {
  base::Writer out;
  out.put(channel == nullptr ? kGaveUp : kSocketLost);
  if (channel != nullptr)
    out.put(channel->index())
        .put(static_cast<std::uint32_t>(channels().size()))
        .put(channel->life().number());
  out.text(base::innerText(why));
  static_cast<void>(
      linkHost().send(out.bytes()));  // on failure the session is ending, and reports that itself
}

void TcpLink::receive(std::span<const std::byte> message, std::vector<core::Fd>) {
  base::Reader in(message);
  const auto kind = in.get<std::uint8_t>();
  const bool one = kind == kSocketLost;
  const auto index = one ? in.get<std::uint32_t>() : 0, count = one ? in.get<std::uint32_t>() : 0;
  const auto life = one ? in.get<std::uint32_t>() : 0;
  const Error why = linkError(Code::kPeerLost, "the peer: " + in.text());
  if (!in.finished()) return;
  // If this end has refused as well, its own reason is reported, not the peer's.
  if (kind == kGaveUp) return peerOver(refusal_.value_or(why));
  if (!one || index >= count || count > kMaxSockets) return;
  if (channels().empty()) expect(count);
  if (move::Channel* const lost = find(index, life); lost != nullptr && count == channels().size())
    peerShut(*lost, ShutReason::kBroken, why);
}

void TcpLink::addTo(std::span<SocketStatistics> rails) const {
  for (const auto& channel : channels())
    if (DataSocket* const socket = of(channel).socket())
      tcp::add(rails[channel->rail()], socket->fd());
}

void TcpLink::addClosed(TcpChannel& channel) {
  backend_.addClosed(channel.rail(), channel.socket()->fd());
}

std::vector<base::SocketAddress> TcpLink::peers() const {
  std::vector<base::SocketAddress> out;
  for (const auto& channel : channels())
    if (channel->up()) out.push_back(remoteAddress(of(channel).socket()->fd()));
  return out;
}

void TcpLink::dropSlot(std::uint32_t slot) {
  for (const auto& channel : channels())
    if (DataSocket* const socket = of(channel).socket()) socket->dropSlot(slot);
}

}  // namespace viaduct::tcp
