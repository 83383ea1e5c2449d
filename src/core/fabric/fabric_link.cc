#include "core/fabric/fabric_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/fabric/fabric_backend.h"
#include "core/fabric/fabric_rail.h"

namespace viaduct::core::fabric {
namespace {

using Phase = LinkState::Phase;
// A first packet that is lost is sent again after a second.
constexpr Duration kLeastPatience = std::chrono::milliseconds(1500);
// Breaking this often without having worked for a while in between is enough.
constexpr int kMostStrikes = 3;
constexpr Duration kAWhile = std::chrono::seconds(2);
constexpr Duration kFirstWait = std::chrono::milliseconds(20), kLastWait = std::chrono::seconds(1);

}  // namespace

FabricLink::FabricLink(FabricBackend& backend, LinkSeed seed, LinkHost& host)
    : backend_(backend), seed_(std::move(seed)), host_(host) {
  why_ = named(Code::kBusy, "its two ends are not connected yet");
  const auto theirs = decodeGreeting(seed_.address);
  if (!theirs) {
    fail(theirs.error());
    return;
  }
  if (theirs->kind != backend_.kind()) {
    fail(named(Code::kUnsupported,
               fmt::format("this end has {}, and the peer {}: these are incompatible",
                           backend_.kind(), theirs->kind)));
    return;
  }
  const std::size_t own = backend_.railCount();
  seats_ = std::vector<Seat>(seed_.dialer ? own : theirs->rails);
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const std::size_t rail = seed_.dialer ? i : i % own;
    const std::size_t key = seed_.dialer ? i % theirs->rails : i;
    seats_[i].channel = std::make_unique<Channel>(
        backend_.channelSeed(rail, key, static_cast<std::uint32_t>(i), remote_), *this, *this);
  }
  const Duration opening = std::max<Duration>(backend_.detect(), kLeastPatience);
  deciding_ = backend_.poller().at(Clock::now() + opening + kLeastPatience, [this] {
    deciding_ = 0;
    for (Seat& seat : seats_) seat.decided = true;
    decide();
  });
  if (!seed_.dialer) return;
  for (Seat& seat : seats_)
    if (!over_here_) openSeat(seat);
}

FabricLink::~FabricLink() {
  if (deciding_ != 0) backend_.poller().forgetTimer(deciding_);
  for (Seat& seat : seats_)
    if (seat.retry != 0) backend_.poller().forgetTimer(seat.retry);
  backend_.forget(*this);
}

Error FabricLink::named(Code code, std::string detail) const {
  return {.code = code,
          .operation = fmt::format("{} link", backend_.can().name),
          .detail = std::move(detail),
          .peer = seed_.peer,
          .device = std::string(backend_.can().name)};
}

void FabricLink::send(const Message& message) {
  // Where it does not go the session is ending, and says so itself.
  static_cast<void>(host_.send(encode(message)));
}

// The dialer's part: a life begins here.
void FabricLink::openSeat(Seat& seat) {
  seat.at_rest = false;
  auto open = seat.channel->begin(seat.channel->life() + 1, false);
  if (open) return send(*open);
  // The peer has not heard of this life. A device whose link is down may not open, and comes back.
  seat.why = std::move(open).error();
  seat.why.peer = seed_.peer;
  bothShut(seat);
}

// The other end's part: it has closed what it had of an earlier life.
Status FabricLink::answer(Seat& seat, const Open& open) {
  Channel& channel = *seat.channel;
  seat.at_rest = false;
  channel.end();
  channel.poster().settle();
  VIADUCT_TRY(const Open mine, channel.begin(open.life, true));
  VIADUCT_CHECK(seat.channel->join(open));
  send(mine);
  return Ok{};
}

void FabricLink::handle(const Open& open) {
  if (over_here_ || open.channel >= seats_.size() || open.answer != seed_.dialer) return;
  Seat& seat = seats_[open.channel];
  Channel& channel = *seat.channel;
  if (seed_.dialer) {
    if (open.life != channel.life() || !channel.waiting()) return;
    if (auto joined = seat.channel->join(open); !joined) strike(seat, joined.error());
    return;
  }
  if (open.life <= channel.life()) return;
  if (auto answered = answer(seat, open); !answered) strike(seat, answered.error());
}

FabricLink::Seat* FabricLink::seatOf(std::uint32_t channel, std::uint32_t life) {
  if (channel >= seats_.size() || seats_[channel].channel->life() != life) return nullptr;
  return &seats_[channel];
}

void FabricLink::shut(Seat& seat, Shut::Reason reason, const Error& why) {
  seat.channel->end();
  send(Shut{.channel = seat.channel->index(),
            .life = seat.channel->life(),
            .reason = reason,
            .why = why.text()});
}

void FabricLink::handle(const Shut& theirs) {
  const Error why = named(Code::kPeerLost, "the peer: " + theirs.why);
  if (theirs.reason == Shut::Reason::kOver) {
    over_there_ = true;
    if (!over_here_) return fail(why);
    return over();
  }
  Seat* const seat = seatOf(theirs.channel, theirs.life);
  if (seat == nullptr || over_here_ || seat->at_rest) return;
  remote_.forgetKeys();
  wakeJobs();  // on other channels: to ask anew
  // Also where the library has told of it first.
  seat->fenced = seat->fenced || theirs.reason == Shut::Reason::kFence;
  if (!seat->channel->down()) {
    seat->why = why;
    shut(*seat, Shut::Reason::kBroken, {.operation = "answer"});
  }
  bothShut(*seat);
}

// Nothing of that life lands anywhere any more. What was under way can be posted again: here, once
// the channel is open, or on another rail.
void FabricLink::bothShut(Seat& seat) {
  Poster& poster = seat.channel->poster();
  seat.at_rest = true;
  poster.settle();
  const bool fenced = std::exchange(seat.fenced, false);
  if (!fenced) {
    const auto up_since = std::exchange(seat.up_since, std::nullopt);
    const bool worked = up_since && Clock::now() - *up_since > kAWhile;
    seat.strikes = worked ? 1 : seat.strikes + 1;
    seat.decided = true;
    decide();
    if (over_here_) return;
    if (anyUp()) poster.stopAll(seat.why, true);
  }
  if (!anyUp() && seat.strikes > kMostStrikes) return fail(seat.why);
  if (!seed_.dialer) return;
  if (fenced) return openSeat(seat);
  const Duration wait = std::min(kLastWait, kFirstWait * (1 << std::min(seat.strikes, 10)));
  seat.retry = backend_.poller().at(Clock::now() + wait, [this, &seat] {
    seat.retry = 0;
    if (!over_here_) openSeat(seat);
  });
}

void FabricLink::broke(Channel& channel) {
  const auto& why = channel.broke();
  if (!why) return;
  // Memory here has changed, and is not reached any more: the way is as good as it was.
  if (why->os_errno == EFAULT) return fence(channel);
  strike(seats_[channel.index()], *why);
}

void FabricLink::strike(Seat& seat, const Error& why) {
  seat.why = why;
  seat.why.peer = seed_.peer;
  shut(seat, Shut::Reason::kBroken, seat.why);
}

void FabricLink::fence(Channel& channel) {
  Seat& seat = seats_[channel.index()];
  if (channel.down()) return;
  seat.fenced = true;
  shut(seat, Shut::Reason::kFence, {.operation = "fence", .detail = "memory was withdrawn"});
}

void FabricLink::withdraw(std::uint32_t slot) {
  if (granted_.erase(slot) == 0) return;
  for (Seat& seat : seats_) fence(*seat.channel);
}

void FabricLink::opened(Channel& channel) {
  Seat& seat = seats_[channel.index()];
  seat.decided = true;
  seat.up_since = Clock::now();
  decide();
  // What waits for others, while none was up, need not any more. Those that were closed on purpose
  // are opened at once.
  for (Seat& other : seats_)
    if (other.channel->down() && !other.fenced)
      other.channel->poster().stopAll(whyDown(other), true);
}

void FabricLink::decide() {
  if (state_.phase != Phase::kOpening || over_here_) return;
  if (!std::all_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.decided; }))
    return;
  const auto up = std::find_if(seats_.begin(), seats_.end(),
                               [](const Seat& seat) { return seat.channel->up(); });
  if (up == seats_.end()) return fail(whyDown(seats_.front()));
  way_ = up->channel->way();
  state_ = {Phase::kReady, fmt::format("{} ({})", way_, backend_.description())};
  host_.changed();
}

void FabricLink::fail(Error why) {
  if (over_here_) return;
  over_here_ = true;
  why.peer = seed_.peer;
  why_ = std::move(why);
  state_ = {Phase::kUnusable, why_.text(), why_.code == Code::kExhausted};
  for (Seat& seat : seats_) seat.channel->end();
  send(Shut{.reason = Shut::Reason::kOver, .why = why_.text()});
  over();
  host_.changed();
}

// Its jobs come back when the other end has closed everything as well, or with the session.
void FabricLink::over() {
  if (!over_here_ || !over_there_) return;
  for (Seat& seat : seats_) seat.channel->poster().forgetJobs();
  for (FabricRail* rail : backend_.fabricRails()) rail->release(*this, why_);
}

void FabricLink::close(Completions& out) {
  if (!over_here_) {
    over_here_ = true;
    why_ = named(Code::kPeerLost, "the session has ended");
    state_ = {Phase::kUnusable, why_.text()};
  }
  for (Seat& seat : seats_) {
    seat.channel->end();
    seat.channel->poster().forgetJobs();
  }
  for (FabricRail* rail : backend_.fabricRails()) rail->take(*this, why_, out);
}

void FabricLink::receive(std::span<const std::byte> bytes, std::vector<Fd>) {
  const auto message = decode(bytes);
  if (!message) return fail(message.error());
  std::visit([this](const auto& one) { handle(one); }, *message);
}

void FabricLink::handle(const Ask& asked) {
  Key out{.slot = asked.slot, .generation = asked.generation};
  const OwnPins::Pin* const pin = backend_.pins().find(asked.slot);
  if (pin != nullptr && pin->generation == asked.generation && pin->usable() && !over_here_) {
    for (const auto& one : pin->registered) out.keys.push_back(one->key());
    granted_.insert(asked.slot);
  }
  send(out);
}

void FabricLink::handle(const Key& key) {
  RemotePin* const pin = remote_.find(key.slot);
  if (pin == nullptr || pin->generation != key.generation) return;
  if (pin->state != RemotePin::Key::kAsked) return;  // nobody's memory is filled unasked
  pin->state = key.keys.empty() ? RemotePin::Key::kRefused : RemotePin::Key::kHere;
  pin->keys = key.keys;
  wakeJobs();
}

// Those that waited for a key find it, or that there will be none.
void FabricLink::wakeJobs() {
  if (over_here_) return;
  for (Seat& seat : seats_) {
    seat.channel->poster().keysHaveCome();
    seat.channel->push();
  }
}

void FabricLink::askForKey(std::uint32_t slot) {
  RemotePin* const pin = remote_.find(slot);
  pin->state = RemotePin::Key::kAsked;
  send(Ask{.slot = slot, .generation = pin->generation});
}

void FabricLink::handle(const Ping& ping) {
  if (ping.answer) {
    if (Seat* const seat = seatOf(ping.channel, ping.life)) seat->channel->answered(ping);
    return;
  }
  send(Ping{.answer = true, .channel = ping.channel, .life = ping.life});
}

void FabricLink::handle(const Stir& stir) {
  if (Seat* const seat = seatOf(stir.channel, stir.life)) seat->channel->stirred(stir);
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
  const RemotePin* const pin = remote_.find(slot);
  if (pin == nullptr) return;
  for (Seat& seat : seats_) seat.channel->retireKey(pin->generation);
  remote_.drop(slot);
  wakeJobs();
}

bool FabricLink::anyUp() const {
  return std::any_of(seats_.begin(), seats_.end(),
                     [](const Seat& seat) { return seat.channel->up(); });
}

// A rail's channels are every `railCount()`th from its own number on: none, one, or several where
// the peer has more rails.
bool FabricLink::anyUpOf(std::size_t rail) const {
  for (std::size_t i = rail; i < seats_.size(); i += backend_.railCount())
    if (seats_[i].channel->up()) return true;
  return false;
}

Error FabricLink::whyNot(std::size_t rail) const {
  return ready() && rail < seats_.size() ? whyDown(seats_[rail]) : why_;
}

Error FabricLink::whyDown(const Seat& seat) const {
  return seat.why.operation.empty() ? named(Code::kTimeout, "the peer did not open its end in time")
                                    : seat.why;
}

// In turn. One that is down is waited for, unless another is up.
Channel* FabricLink::channelFor(std::size_t rail) {
  if (!ready() || rail >= seats_.size()) return nullptr;
  const std::size_t rails = backend_.railCount();
  const std::size_t mine = (seats_.size() - rail + rails - 1) / rails;
  Channel* channel = nullptr;
  for (std::size_t i = 0; i < mine; ++i) {
    channel = seats_[rail + (turn_++ % mine) * rails].channel.get();
    if (channel->up()) return channel;
  }
  return anyUp() ? nullptr : channel;
}

bool FabricLink::servedBy(const Rail& rail) const {
  const std::size_t index = static_cast<const FabricRail&>(rail).index();
  return index < seats_.size() && (anyUpOf(index) || !anyUp());
}

std::optional<std::string_view> FabricLink::reaches(OpKind, std::uint32_t local_pin,
                                                    std::uint32_t remote_pin) const {
  if (!ready() || backend_.pins().find(local_pin) == nullptr) return std::nullopt;
  if (remote_.find(remote_pin) == nullptr) return std::nullopt;
  return way_;
}

}  // namespace viaduct::core::fabric
