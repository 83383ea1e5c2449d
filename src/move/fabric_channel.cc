#include "move/fabric_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace viaduct::move {
namespace {

// How often a channel with something under way is looked at.
constexpr Duration kLook = std::chrono::milliseconds(50);
// The peer handles its sockets between two answers: after the second answer, unread data is no
// excuse any more.
constexpr int kEnoughAnswers = 2;
// The longest pauses between two rounds of progress of a channel without a descriptor: while an op
// waits for such a round, and while it is known that none does.
constexpr Duration kLongestDoze = std::chrono::milliseconds(1);
constexpr Duration kLongestRest = std::chrono::seconds(1);
// An event for incoming data costs both ends some 5 us: under continuous traffic a channel is armed
// less and less often. In multiples of the spin.
constexpr int kMostUnarmed = 8;
// Only new events of a channel that makes progress count: some descriptors stay readable until
// arm(), and if each round took that for traffic, the channel would never sleep.
constexpr std::uint32_t kNews = EPOLLIN | EPOLLET;
// An endpoint of libfabric or UCX opens about a dozen.
constexpr int kEnoughDescriptors = 24;

// From the highest number down: the system gives out the lowest that is free.
bool areDescriptorsShort() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kMost = std::numeric_limits<int>::max();
  int free = 0;
  for (auto fd = static_cast<int>(std::min(limit.rlim_cur, kMost));
       fd-- > 0 && free < kEnoughDescriptors;)
    if (::fcntl(fd, F_GETFD) < 0) ++free;
  return free < kEnoughDescriptors;
}

}  // namespace

FabricChannel::FabricChannel(const FabricChannelSeed& seed, ChannelHost& host, PosterHost& peer,
                             const ChannelLife& life)
    : Channel(host, seed.place, life), seed_(seed), peer_(peer), poster_(peer, seed.poster) {}

Result<OpenChannel> FabricChannel::begin(bool answer) {
  talk_ = {};  // of an earlier life, also if it was told after its end
  // Libraries report a shortage of descriptors as any other error, and UCX may end the process. A
  // later life opens what an earlier one has closed.
  if (life().isFirst() && areDescriptorsShort())
    return linkError(
        {.code = Code::kExhausted,
         .detail = fmt::format("fewer than {} file descriptors are free", kEnoughDescriptors)});
  VIADUCT_TRY(endpoint_, seed_.domain.open());
  opening_until_ = Clock::now() + seed_.opening;
  lookLater();
  return OpenChannel{.answer = answer,
                     .channel = index(),
                     .life = life().number(),
                     .address = endpoint_->address(),
                     .probe = seed_.word.probe()};
}

Status FabricChannel::join(const OpenChannel& theirs) {
  VIADUCT_CHECK(endpoint_->join(theirs.address));
  transport_ = endpoint_->transport();
  transport_devices_ = endpoint_->transportDevices();
  there_ = theirs.probe;
  // Watched all the time: an event while the channel makes progress shows that it is to stay awake,
  // and some libraries tell of incoming data in no other way.
  if (endpoint_->fd() >= 0) {
    VIADUCT_TRY(watch_,
                seed_.poller.watch(endpoint_->fd(), kNews, [this](std::uint32_t) { told(); }));
  }
  life().on(ChannelEvent::kJoin);
  last_busy_ = Clock::now();
  host().activate(*this);
  return Ok{};
}

void FabricChannel::told() {
  last_busy_ = Clock::now();
  unarmed_for_ = active ? std::min(unarmed_for_ * 2, kMostUnarmed) : 1;
  host().activate(*this);
}

// No library reports a path that does not work before it is used, and some not even then.
// False: the endpoint did not take the probe; the next round of progress tries again.
bool FabricChannel::probed() {
  if (!talk_.probe_sent) {
    const Piece word{.here = seed_.word.out(),
                     .there = there_.address,
                     .bytes = sizeof(std::uint64_t),
                     .local = seed_.word.registered.get()};
    // Generation 0 is no pin's.
    const RemoteKey key = endpoint_->keyOf(0, there_.key);
    if (key == nullptr)
      breakWith(linkError({.code = Code::kProtocol, .detail = "the peer's key cannot be read"}));
    else if (endpoint_->post(OpKind::kWrite, std::span(&word, 1), key).pieces == 1) {
      probe_ = endpoint_->flush();
      talk_.probe_sent = true;
    }
  }
  return talk_.probe_sent && endpoint_->ended(probe_);
}

Error FabricChannel::linkError(Error why) const {
  why.operation = fmt::format("{} link", seed_.poster.device);
  why.device = seed_.poster.device;
  return why;
}

void FabricChannel::close() {
  if (timer_ != 0) seed_.poller.forgetTimer(std::exchange(timer_, 0));
  awake();
  if (watch_ != 0) seed_.poller.forget(std::exchange(watch_, 0));
  host().deactivate(*this);
  if (!endpoint_) return;
  endpoint_->letGo(probe_);
  poster_.rewind(*endpoint_);
  endpoint_.reset();
}

void FabricChannel::push() {
  if (!up()) return;
  const bool was_idle = poster_.idle();
  if (poster_.starved()) tellPolling(true);
  poster_.push(*endpoint_);
  if (!was_idle || poster_.idle()) return;
  lookLater();
  host().activate(*this);
}

void FabricChannel::add(Job& job) {
  poster_.add(job);
  push();
  if (up()) host().activate(*this);
}

void FabricChannel::keysHaveCome() {
  poster_.keysHaveCome();
  push();
}

void FabricChannel::retireKey(std::uint32_t generation) {
  if (endpoint_) endpoint_->retire(generation);
}

void FabricChannel::progress(Clock::time_point now, Clock::time_point until) {
  bool moved = false, told = false;
  do {
    moved = endpoint_->progress();
    if (!up() && probed()) {
      life().on(ChannelEvent::kProve);
      host().opened(*this);
      moved = true;
    }
    const bool reaped = poster_.reap(*endpoint_);
    if (reaped) {
      talk_.asked = false;
      talk_.answers = 0;
      moved = true;
    }
    if (auto why = endpoint_->broken()) return breakWith(std::move(*why));
    push();
    if (!moved) continue;
    last_busy_ = now;
    awake();
    told = reaped && poster_.idle();  // all is over: who waits for it hears that first
  } while (moved && !told && (now = Clock::now()) < until);
}

bool FabricChannel::sleep(Clock::time_point now) {
  const Duration quiet = now - std::max(last_busy_, poster_.lastMoved());
  if (life().broken() || quiet < seed_.spin) return false;
  const bool unposted = poster_.starved() || (!up() && !talk_.probe_sent);
  if (watch_ != 0 && !unposted) return sleepUntilTold(now, quiet);
  if (unposted || poster_.idle()) doze(now, quiet, up() && !unposted);
  return false;
}

bool FabricChannel::sleepUntilTold(Clock::time_point now, Duration quiet) {
  if (!endpoint_->tellsUnarmed() && !armedAWhile(now, quiet)) return false;
  // Told of anew, where it is readable already.
  return endpoint_->arm() && seed_.poller.change(watch_, kNews).has_value();
}

// No event will come: the channel makes progress whenever its rail does, and again when it has been
// quiet for half as long once more.
void FabricChannel::doze(Clock::time_point now, Duration quiet, bool rests) {
  if (rests) tellPolling(false);
  if (dozes_ || talk_.peer_polls) return;
  const Duration longest = rests ? kLongestRest : kLongestDoze;
  doze_ = seed_.poller.at(now + std::min(longest, quiet / 2), [this] { dozes_ = false; });
  dozes_ = true;
}

// Tells the peer whether we are polling. A peer without wake-ups polls while we do.
void FabricChannel::tellPolling(bool awake) {
  if (watch_ != 0 || talk_.told_polling == awake) return;
  talk_.told_polling = awake;
  peer_.tell(PollingNotice{.awake = awake, .channel = index(), .life = life().number()});
}

void FabricChannel::peerPolling(bool awake) {
  talk_.peer_polls = awake && watch_ == 0;
  if (!talk_.peer_polls || !joined()) return;
  last_busy_ = Clock::now();
  host().activate(*this);
}

// Nobody knows what has come in while it was not armed: it sleeps when it has been for a while, and
// nothing came.
bool FabricChannel::armedAWhile(Clock::time_point now, Duration quiet) {
  if (armed_since_) return now - *armed_since_ >= seed_.spin;
  if (quiet >= seed_.spin * unarmed_for_ && endpoint_->arm()) armed_since_ = now;
  return false;
}

void FabricChannel::awake() {
  if (std::exchange(armed_since_, std::nullopt) && endpoint_) endpoint_->disarm();
  if (std::exchange(dozes_, false)) seed_.poller.forgetTimer(doze_);
}

void FabricChannel::lookLater() {
  if (timer_ == 0)
    timer_ = seed_.poller.at(Clock::now() + kLook, [this] {
      timer_ = 0;
      look();
    });
}

void FabricChannel::look() {
  const auto now = Clock::now();
  const bool waits = life().state() == ChannelState::kWaiting;
  if (waits || life().state() == ChannelState::kProbing) {
    if (now >= opening_until_)
      return breakWith(linkError({.code = Code::kTimeout,
                                  .detail = waits ? "the peer did not open its end in time"
                                                  : "no byte arrived over " + transport_devices_,
                                  .cause = "the devices of the two ends do not reach each other"}));
    return lookLater();
  }
  if (poster_.idle()) return;
  judgeSilence(now);
  lookLater();
}

// Neither UCX nor libfabric nor the kernel tells of a path that was cut: for minutes nothing comes
// back, and that is all. The session may go another way, and can be asked whether the peer is well.
void FabricChannel::judgeSilence(Clock::time_point now) {
  if (now - poster_.lastMoved() < poster_.patience()) return;
  if (talk_.answers >= kEnoughAnswers)
    return breakWith(linkError(
        {.code = Code::kTimeout,
         .detail = "no answer arrived over " + transport_devices_ + ", although the peer is alive",
         .cause = "the path of this rail is cut or has stalled",
         .remedy = "check the link; the agent retries the rail"}));
  if (std::exchange(talk_.asked, true)) return;
  host().activate(*this);  // it may sleep, and a library may have lost what was to wake it
  peer_.tell(PingChannel{.channel = index(), .life = life().number()});
}

void FabricChannel::answered() {
  if (std::exchange(talk_.asked, false)) ++talk_.answers;
}

}  // namespace viaduct::move
