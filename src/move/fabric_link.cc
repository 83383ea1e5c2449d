#include "move/fabric_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "move/fabric_backend.h"

namespace viaduct::move {
namespace {

// TCP sends a lost first packet again after one second.
constexpr Duration kLeastPatience = std::chrono::milliseconds(1500);

}  // namespace

template <class F>
void FabricLink::eachChannel(F f) {
  for (const auto& channel : channels()) f(static_cast<FabricChannel&>(*channel));
}

FabricLink::FabricLink(FabricBackend& backend, core::LinkSeed link_seed, core::LinkHost& host)
    : ChannelLink(backend.linkContext(), std::move(link_seed), host), backend_(backend) {
  const auto theirs = decodeGreeting(seed().address);
  if (!theirs) {
    fail(theirs.error());
    return;
  }
  if (theirs->kind != backend_.kind()) {
    fail(linkError(Code::kUnsupported,
                   fmt::format("this end has {}, and the peer {}: these are incompatible",
                               backend_.kind(), theirs->kind)));
    return;
  }
  const std::size_t own = backend_.railCount();
  const std::size_t count = seed().dialer ? own : theirs->rails;
  for (std::size_t i = 0; i < count; ++i) {
    const Channel::Position place{.index = static_cast<std::uint32_t>(i),
                                  .rail = seed().dialer ? i : i % own};
    const std::size_t key = seed().dialer ? i % theirs->rails : i;
    add(std::make_unique<FabricChannel>(backend_.channelSeed(place, key, remote_), *this, *this,
                                        newLife(1)));
  }
  const Duration opening = std::max<Duration>(backend_.detect(), kLeastPatience);
  readyBy(context().poller.now() + opening + kLeastPatience);
  if (!seed().dialer) return;
  for (const auto& channel : channels())
    if (!over()) openNext(*channel);
}

FabricLink::~FabricLink() {
  end();
  backend_.forget(*this);
}

void FabricLink::tell(const FabricMessage& message) {
  // If the message cannot be sent, the session is ending, and the agent learns that from it.
  static_cast<void>(linkHost().send(encode(message)));
}

void FabricLink::tellShut(const Channel* channel, ShutReason reason, const Error& why) {
  ShutChannel shut{.reason = reason, .why = why.text().substr(0, kMaxWhy)};
  if (channel != nullptr) {
    shut.channel = channel->index();
    shut.life = channel->life().number();
  }
  tell(shut);
}

Status FabricLink::open(Channel& channel) {
  VIADUCT_TRY(const OpenChannel mine, static_cast<FabricChannel&>(channel).begin(false));
  tell(mine);
  return Ok{};
}

Status FabricLink::answer(FabricChannel& channel, const OpenChannel& theirs) {
  VIADUCT_TRY(const OpenChannel mine, channel.begin(true));
  VIADUCT_CHECK(channel.join(theirs));
  tell(mine);
  return Ok{};
}

void FabricLink::handle(const OpenChannel& theirs) {
  if (over() || theirs.channel >= channels().size() || theirs.answer != seed().dialer) return;
  auto& channel = static_cast<FabricChannel&>(*channels()[theirs.channel]);
  ChannelLife& life = channel.life();
  Status joined = Ok{};
  if (seed().dialer) {
    if (theirs.life != life.number() || life.state() != ChannelState::kWaiting) return;
    joined = channel.join(theirs);
  } else {
    // The dialer skips a life if its own endpoint did not open.
    if (theirs.life < life.number() || !life.on(ChannelEvent::kOpen)) return;
    life.skipTo(theirs.life);
    joined = answer(channel, theirs);
  }
  if (!joined) strike(channel, std::move(joined).error());
}

void FabricLink::handle(const ShutChannel& theirs) {
  const Error why = linkError(Code::kPeerLost, "the peer: " + theirs.why);
  if (theirs.reason == ShutReason::kOver) return peerOver(why);
  Channel* const channel = find(theirs.channel, theirs.life);
  if (channel == nullptr || over()) return;
  remote_.forgetKeys();
  wakeJobs();  // jobs on other channels request their keys again
  peerShut(*channel, theirs.reason, why);
}

void FabricLink::broke(Channel& channel) {
  // Our memory was unmapped or protected, and peers cannot reach it any more. The path still works.
  if (channel.why().os_errno == EFAULT) return fence(channel);
  strike(channel, channel.why());
}

void FabricLink::withdraw(std::uint32_t slot) {
  if (granted_.erase(slot) == 0) return;
  for (const auto& channel : channels()) fence(*channel);
  limited_.erase(slot);
}

std::string FabricLink::readyText() {
  const auto up = std::find_if(channels().begin(), channels().end(),
                               [](const auto& channel) { return channel->up(); });
  transport_ = static_cast<const FabricChannel&>(**up).transport();
  return fmt::format("{} ({})", transport_, backend_.description());
}

void FabricLink::receive(std::span<const std::byte> bytes, std::vector<base::Fd>) {
  const auto message = decode(bytes);
  if (!message) return fail(message.error());
  std::visit([this](const auto& one) { handle(one); }, *message);
}

void FabricLink::handle(const KeyRequest& asked) {
  KeyAnswer out{.slot = asked.slot, .generation = asked.generation};
  const OwnPin* const pin = backend_.pins().find(asked.slot);
  if (pin != nullptr && pin->generation == asked.generation && pin->usable() && !over()) {
    const auto* const keys = keysFor(asked.slot, *pin);
    if (keys != nullptr) {
      for (const auto& one : *keys) out.keys.push_back(one->key());
      granted_.insert(asked.slot);
    }
  }
  tell(out);
}

// The registrations whose keys the peer may have; null: none. A limited peer gets keys of its own,
// which allow no more than its card and end with the session.
const Registrations* FabricLink::keysFor(std::uint32_t slot, const OwnPin& pin) {
  const core::PinRight right = seed().rights->to(slot, pin.audience);
  if (!right.any()) return nullptr;
  if (!seed().rights->isLimited() || !pin.audience.isEverybody()) return &pin.registered;
  if (const auto known = limited_.find(slot); known != limited_.end()) return &known->second;
  auto made = backend_.registerFor(pin, right);
  if (made) return &limited_.emplace(slot, *std::move(made)).first->second;
  base::log(base::LogLevel::kWarning, "peer {}: no key for a pin: {}", seed().peer,
            made.error().text());
  return nullptr;
}

void FabricLink::handle(const KeyAnswer& key) {
  PeerPin* const pin = remote_.find(key.slot);
  if (pin == nullptr || pin->generation != key.generation) return;
  if (pin->state != PeerPin::KeyState::kAsked) return;  // else a peer could make us store anything
  pin->state = key.keys.empty() ? PeerPin::KeyState::kRefused : PeerPin::KeyState::kHere;
  pin->keys = key.keys;
  wakeJobs();
}

// Jobs that wait for a key try again: the key has arrived, or was refused or withdrawn.
void FabricLink::wakeJobs() {
  if (!over()) eachChannel([](FabricChannel& channel) { channel.keysHaveCome(); });
}

void FabricLink::askForKey(std::uint32_t slot) {
  PeerPin* const pin = remote_.find(slot);
  if (pin == nullptr || pin->state != PeerPin::KeyState::kUnasked) return;
  pin->state = PeerPin::KeyState::kAsked;
  tell(KeyRequest{.slot = slot, .generation = pin->generation});
}

void FabricLink::handle(const PingChannel& ping) {
  auto* const channel = static_cast<FabricChannel*>(find(ping.channel, ping.life));
  if (channel != nullptr && ping.answer) channel->answered();
  if (channel != nullptr && !ping.answer) channel->pinged();
  if (!ping.answer) tell(PingChannel{.answer = true, .channel = ping.channel, .life = ping.life});
}

void FabricLink::handle(const PollingNotice& polling) {
  if (Channel* const channel = find(polling.channel, polling.life))
    static_cast<FabricChannel&>(*channel).peerPolling(polling.awake);
}

void FabricLink::addPin(const core::RemotePin& pin) {
  const auto generation = decodePinKey(pin.key);
  if (!generation || pin.info.kind != MemoryKind::kHost) return;
  dropPin(pin.info.slot);
  remote_.add(pin.info.slot,
              {.generation = *generation, .address = pin.info.address, .bytes = pin.info.bytes});
}

void FabricLink::dropPin(std::uint32_t slot) {
  const PeerPin* const pin = remote_.find(slot);
  if (pin == nullptr) return;
  eachChannel([&](FabricChannel& channel) { channel.retireKey(pin->generation); });
  remote_.drop(slot);
  wakeJobs();
}

bool FabricLink::isPrivate() const { return backend_.isPrivate(); }

std::optional<std::string_view> FabricLink::reaches(OpKind, std::uint32_t local_pin,
                                                    std::uint32_t remote_pin) const {
  if (!ready() || backend_.pins().find(local_pin) == nullptr) return std::nullopt;
  if (remote_.find(remote_pin) == nullptr) return std::nullopt;
  return transport_;
}

}  // namespace viaduct::move
