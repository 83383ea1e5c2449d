#include "move/fabric_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "move/fabric_backend.h"
#include "move/fabric_rail.h"

namespace viaduct::move {
namespace {

using Phase = core::LinkState::Phase;
// A first packet that is lost is sent again after a second.
constexpr Duration kLeastPatience = std::chrono::milliseconds(1500);
// Breaking this often without having worked for a while in between is enough.
constexpr int kMostStrikes = 3;
constexpr Duration kAWhile = std::chrono::seconds(2);
constexpr Duration kFirstWait = std::chrono::milliseconds(20), kLastWait = std::chrono::seconds(1);

}  // namespace

FabricLink::FabricLink(FabricBackend& backend, core::LinkSeed seed, core::LinkHost& host)
    : backend_(backend), seed_(std::move(seed)), host_(host) {
  why_ = linkError(Code::kBusy, "its two ends are not connected yet");
  const auto theirs = decodeGreeting(seed_.address);
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
  entries_ = std::vector<ChannelEntry>(seed_.dialer ? own : theirs->rails);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::size_t rail = seed_.dialer ? i : i % own;
    const std::size_t key = seed_.dialer ? i % theirs->rails : i;
    entries_[i].channel = std::make_unique<Channel>(
        backend_.channelSeed(rail, key, static_cast<std::uint32_t>(i), remote_), *this, *this);
  }
  const Duration opening = std::max<Duration>(backend_.detect(), kLeastPatience);
  deciding_ = backend_.poller().at(Clock::now() + opening + kLeastPatience, [this] {
    deciding_ = 0;
    for (ChannelEntry& entry : entries_) entry.decided = true;
    decide();
  });
  if (!seed_.dialer) return;
  for (ChannelEntry& entry : entries_)
    if (!over_here_) openChannel(entry);
}

FabricLink::~FabricLink() {
  if (deciding_ != 0) backend_.poller().forgetTimer(deciding_);
  for (ChannelEntry& entry : entries_)
    if (entry.retry != 0) backend_.poller().forgetTimer(entry.retry);
  backend_.forget(*this);
}

Error FabricLink::linkError(Code code, std::string detail) const {
  return {.code = code,
          .operation = fmt::format("{} link", backend_.can().name),
          .detail = std::move(detail),
          .peer = seed_.peer,
          .device = std::string(backend_.can().name)};
}

void FabricLink::send(const FabricMessage& message) {
  // Where it does not go the session is ending, and says so itself.
  static_cast<void>(host_.send(encode(message)));
}

// The dialer's part: a life begins here.
void FabricLink::openChannel(ChannelEntry& entry) {
  entry.at_rest = false;
  auto open = entry.channel->begin(entry.channel->life() + 1, false);
  if (open) return send(*open);
  // The peer has not heard of this life. A device whose link is down may not open, and comes back.
  entry.why = std::move(open).error();
  entry.why.peer = seed_.peer;
  bothShut(entry);
}

// The other end's part: it has closed what it had of an earlier life.
Status FabricLink::answer(ChannelEntry& entry, const OpenChannel& open) {
  Channel& channel = *entry.channel;
  entry.at_rest = false;
  channel.end();
  channel.poster().settle();
  VIADUCT_TRY(const OpenChannel mine, channel.begin(open.life, true));
  VIADUCT_CHECK(entry.channel->join(open));
  send(mine);
  return Ok{};
}

void FabricLink::handle(const OpenChannel& open) {
  if (over_here_ || open.channel >= entries_.size() || open.answer != seed_.dialer) return;
  ChannelEntry& entry = entries_[open.channel];
  Channel& channel = *entry.channel;
  if (seed_.dialer) {
    if (open.life != channel.life() || !channel.waiting()) return;
    if (auto joined = entry.channel->join(open); !joined) strike(entry, joined.error());
    return;
  }
  if (open.life <= channel.life()) return;
  if (auto answered = answer(entry, open); !answered) strike(entry, answered.error());
}

FabricLink::ChannelEntry* FabricLink::entryOf(std::uint32_t channel, std::uint32_t life) {
  if (channel >= entries_.size() || entries_[channel].channel->life() != life) return nullptr;
  return &entries_[channel];
}

void FabricLink::shut(ChannelEntry& entry, ShutChannel::Reason reason, const Error& why) {
  entry.channel->end();
  send(ShutChannel{.channel = entry.channel->index(),
                   .life = entry.channel->life(),
                   .reason = reason,
                   .why = why.text()});
}

void FabricLink::handle(const ShutChannel& theirs) {
  const Error why = linkError(Code::kPeerLost, "the peer: " + theirs.why);
  if (theirs.reason == ShutChannel::Reason::kOver) {
    over_there_ = true;
    if (!over_here_) return fail(why);
    return over();
  }
  ChannelEntry* const entry = entryOf(theirs.channel, theirs.life);
  if (entry == nullptr || over_here_ || entry->at_rest) return;
  remote_.forgetKeys();
  wakeJobs();  // on other channels: to ask anew
  // Also where the library has told of it first.
  entry->fenced = entry->fenced || theirs.reason == ShutChannel::Reason::kFence;
  if (!entry->channel->down()) {
    entry->why = why;
    shut(*entry, ShutChannel::Reason::kBroken, {.operation = "answer"});
  }
  bothShut(*entry);
}

// Nothing of that life lands anywhere any more. What was under way can be posted again: here, once
// the channel is open, or on another rail.
void FabricLink::bothShut(ChannelEntry& entry) {
  Poster& poster = entry.channel->poster();
  entry.at_rest = true;
  poster.settle();
  const bool fenced = std::exchange(entry.fenced, false);
  if (!fenced) {
    const auto up_since = std::exchange(entry.up_since, std::nullopt);
    const bool worked = up_since && Clock::now() - *up_since > kAWhile;
    entry.strikes = worked ? 1 : entry.strikes + 1;
    entry.decided = true;
    decide();
    if (over_here_) return;
    if (anyUp()) poster.stopAll(entry.why, true);
  }
  if (!anyUp() && entry.strikes > kMostStrikes) return fail(entry.why);
  if (!seed_.dialer) return;
  if (fenced) return openChannel(entry);
  const Duration wait = std::min(kLastWait, kFirstWait * (1 << std::min(entry.strikes, 10)));
  entry.retry = backend_.poller().at(Clock::now() + wait, [this, &entry] {
    entry.retry = 0;
    if (!over_here_) openChannel(entry);
  });
}

void FabricLink::broke(Channel& channel) {
  const auto& why = channel.broke();
  if (!why) return;
  // Memory here has changed, and is not reached any more: the way is as good as it was.
  if (why->os_errno == EFAULT) return fence(channel);
  strike(entries_[channel.index()], *why);
}

void FabricLink::strike(ChannelEntry& entry, const Error& why) {
  entry.why = why;
  entry.why.peer = seed_.peer;
  shut(entry, ShutChannel::Reason::kBroken, entry.why);
}

void FabricLink::fence(Channel& channel) {
  ChannelEntry& entry = entries_[channel.index()];
  if (channel.down()) return;
  entry.fenced = true;
  shut(entry, ShutChannel::Reason::kFence,
       {.operation = "fence", .detail = "memory was withdrawn"});
}

void FabricLink::withdraw(std::uint32_t slot) {
  if (granted_.erase(slot) == 0) return;
  for (ChannelEntry& entry : entries_) fence(*entry.channel);
}

void FabricLink::opened(Channel& channel) {
  ChannelEntry& entry = entries_[channel.index()];
  entry.decided = true;
  entry.up_since = Clock::now();
  decide();
  // What waits for others, while none was up, need not any more. Those that were closed on purpose
  // are opened at once.
  for (ChannelEntry& other : entries_)
    if (other.channel->down() && !other.fenced)
      other.channel->poster().stopAll(whyDown(other), true);
}

void FabricLink::decide() {
  if (state_.phase != Phase::kOpening || over_here_) return;
  if (!std::all_of(entries_.begin(), entries_.end(),
                   [](const ChannelEntry& entry) { return entry.decided; }))
    return;
  const auto up = std::find_if(entries_.begin(), entries_.end(),
                               [](const ChannelEntry& entry) { return entry.channel->up(); });
  if (up == entries_.end()) return fail(whyDown(entries_.front()));
  transport_ = up->channel->transport();
  state_ = {Phase::kReady, fmt::format("{} ({})", transport_, backend_.description())};
  host_.changed();
}

void FabricLink::fail(Error why) {
  if (over_here_) return;
  over_here_ = true;
  why.peer = seed_.peer;
  why_ = std::move(why);
  state_ = {Phase::kUnusable, why_.text(), why_.code == Code::kExhausted};
  for (ChannelEntry& entry : entries_) entry.channel->end();
  send(ShutChannel{.reason = ShutChannel::Reason::kOver, .why = why_.text()});
  over();
  host_.changed();
}

// Its jobs come back when the other end has closed everything as well, or with the session.
void FabricLink::over() {
  if (!over_here_ || !over_there_) return;
  for (ChannelEntry& entry : entries_) entry.channel->poster().forgetJobs();
  for (FabricRail* rail : backend_.fabricRails()) rail->release(*this, why_);
}

void FabricLink::close(core::Completions& out) {
  if (!over_here_) {
    over_here_ = true;
    why_ = linkError(Code::kPeerLost, "the session has ended");
    state_ = {Phase::kUnusable, why_.text()};
  }
  for (ChannelEntry& entry : entries_) {
    entry.channel->end();
    entry.channel->poster().forgetJobs();
  }
  for (FabricRail* rail : backend_.fabricRails()) rail->take(*this, why_, out);
}

void FabricLink::receive(std::span<const std::byte> bytes, std::vector<base::Fd>) {
  const auto message = decode(bytes);
  if (!message) return fail(message.error());
  std::visit([this](const auto& one) { handle(one); }, *message);
}

void FabricLink::handle(const KeyRequest& asked) {
  KeyAnswer out{.slot = asked.slot, .generation = asked.generation};
  const OwnPins::OwnPin* const pin = backend_.pins().find(asked.slot);
  if (pin != nullptr && pin->generation == asked.generation && pin->usable() && !over_here_) {
    for (const auto& one : pin->registered) out.keys.push_back(one->key());
    granted_.insert(asked.slot);
  }
  send(out);
}

void FabricLink::handle(const KeyAnswer& key) {
  PeerPin* const pin = remote_.find(key.slot);
  if (pin == nullptr || pin->generation != key.generation) return;
  if (pin->state != PeerPin::KeyState::kAsked) return;  // nobody's memory is filled unasked
  pin->state = key.keys.empty() ? PeerPin::KeyState::kRefused : PeerPin::KeyState::kHere;
  pin->keys = key.keys;
  wakeJobs();
}

// Those that waited for a key find it, or that there will be none.
void FabricLink::wakeJobs() {
  if (over_here_) return;
  for (ChannelEntry& entry : entries_) {
    entry.channel->poster().keysHaveCome();
    entry.channel->push();
  }
}

void FabricLink::askForKey(std::uint32_t slot) {
  PeerPin* const pin = remote_.find(slot);
  pin->state = PeerPin::KeyState::kAsked;
  send(KeyRequest{.slot = slot, .generation = pin->generation});
}

void FabricLink::handle(const PingChannel& ping) {
  if (ping.answer) {
    if (ChannelEntry* const entry = entryOf(ping.channel, ping.life))
      entry->channel->answered(ping);
    return;
  }
  send(PingChannel{.answer = true, .channel = ping.channel, .life = ping.life});
}

void FabricLink::handle(const PollingNotice& polling) {
  if (ChannelEntry* const entry = entryOf(polling.channel, polling.life))
    entry->channel->peerPolling(polling);
}

void FabricLink::activate(Channel& channel) {
  backend_.fabricRails()[channel.rail()]->activate(channel);
}
void FabricLink::deactivate(Channel& channel) {
  backend_.fabricRails()[channel.rail()]->deactivate(channel);
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
  for (ChannelEntry& entry : entries_) entry.channel->retireKey(pin->generation);
  remote_.drop(slot);
  wakeJobs();
}

bool FabricLink::anyUp() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const ChannelEntry& entry) { return entry.channel->up(); });
}

// A rail's channels are every `railCount()`th from its own number on: none, one, or several where
// the peer has more rails.
bool FabricLink::anyUpOf(std::size_t rail) const {
  for (std::size_t i = rail; i < entries_.size(); i += backend_.railCount())
    if (entries_[i].channel->up()) return true;
  return false;
}

Error FabricLink::whyNot(std::size_t rail) const {
  return ready() && rail < entries_.size() ? whyDown(entries_[rail]) : why_;
}

Error FabricLink::whyDown(const ChannelEntry& entry) const {
  return entry.why.operation.empty()
             ? linkError(Code::kTimeout, "the peer did not open its end in time")
             : entry.why;
}

// The next one, round robin. One that is down is waited for, unless another is up.
Channel* FabricLink::channelFor(std::size_t rail) {
  if (!ready() || rail >= entries_.size()) return nullptr;
  const std::size_t rails = backend_.railCount();
  const std::size_t mine = (entries_.size() - rail + rails - 1) / rails;
  Channel* channel = nullptr;
  for (std::size_t i = 0; i < mine; ++i) {
    channel = entries_[rail + (next_channel_++ % mine) * rails].channel.get();
    if (channel->up()) return channel;
  }
  return anyUp() ? nullptr : channel;
}

bool FabricLink::servedBy(const core::Rail& rail) const {
  const std::size_t index = static_cast<const FabricRail&>(rail).index();
  return index < entries_.size() && (anyUpOf(index) || !anyUp());
}

std::optional<std::string_view> FabricLink::reaches(OpKind, std::uint32_t local_pin,
                                                    std::uint32_t remote_pin) const {
  if (!ready() || backend_.pins().find(local_pin) == nullptr) return std::nullopt;
  if (remote_.find(remote_pin) == nullptr) return std::nullopt;
  return transport_;
}

}  // namespace viaduct::move
