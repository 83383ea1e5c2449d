#include "move/channel.h"

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

Channel::Channel(const ChannelSeed& seed, ChannelHost& host, PosterHost& poster_host)
    : seed_(seed), host_(host), poster_(poster_host, seed.poster) {}

Channel::~Channel() { end(); }

Result<OpenChannel> Channel::begin(std::uint32_t life, bool answer) {
  life_ = life;
  // Of an earlier life, also if it was told after its end.
  probe_sent_ = told_polling_ = peer_polls_ = asked_ = false;
  answers_ = 0;
  // Libraries report a shortage of descriptors as any other error, and UCX may end the process. A
  // later life opens what an earlier one has closed.
  if (life == 1 && areDescriptorsShort())
    return linkError(
        {.code = Code::kExhausted,
         .detail = fmt::format("fewer than {} file descriptors are free", kEnoughDescriptors)});
  VIADUCT_TRY(endpoint_, seed_.domain.open());
  phase_ = Phase::kWaiting;
  opening_until_ = Clock::now() + seed_.opening;
  lookLater();
  return OpenChannel{.answer = answer,
                     .channel = seed_.index,
                     .life = life,
                     .address = endpoint_->address(),
                     .probe = seed_.word.probe()};
}

Status Channel::join(const OpenChannel& theirs) {
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
  phase_ = Phase::kProbing;
  last_busy_ = Clock::now();
  host_.activate(*this);
  return Ok{};
}

void Channel::told() {
  last_busy_ = Clock::now();
  unarmed_for_ = active ? std::min(unarmed_for_ * 2, kMostUnarmed) : 1;
  host_.activate(*this);
}

// No library reports a path that does not work before it is used, and some not even then.
// False: the endpoint did not take the probe; the next round of progress tries again.
bool Channel::probed() {
  if (!probe_sent_) {
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
      probe_sent_ = true;
    }
  }
  return probe_sent_ && endpoint_->ended(probe_);
}

Error Channel::linkError(Error why) const {
  why.operation = fmt::format("{} link", seed_.poster.device);
  why.device = seed_.poster.device;
  return why;
}

void Channel::end() {
  if (timer_ != 0) seed_.poller.forgetTimer(std::exchange(timer_, 0));
  awake();
  if (watch_ != 0) seed_.poller.forget(std::exchange(watch_, 0));
  host_.deactivate(*this);
  phase_ = Phase::kDown;
  broke_.reset();
  if (!endpoint_) return;
  endpoint_->letGo(probe_);
  poster_.rewind(*endpoint_);
  endpoint_.reset();
}

void Channel::breakWith(Error why) {
  if (broke_ || down()) return;
  broke_ = std::move(why);
  host_.activate(*this);
}

void Channel::push() {
  if (!up() || broke_) return;
  const bool was_idle = poster_.idle();
  if (poster_.starved()) tellPolling(true);
  poster_.push(*endpoint_);
  if (!was_idle || poster_.idle()) return;
  lookLater();
  host_.activate(*this);
}

void Channel::retireKey(std::uint32_t generation) {
  if (endpoint_) endpoint_->retire(generation);
}

void Channel::progress(Clock::time_point now, Clock::time_point until) {
  bool moved = false, told = false;
  do {
    moved = endpoint_->progress();
    if (phase_ == Phase::kProbing && probed()) {
      phase_ = Phase::kUp;
      host_.opened(*this);
      moved = true;
    }
    const bool reaped = poster_.reap(*endpoint_);
    if (reaped) {
      asked_ = false;
      answers_ = 0;
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

bool Channel::sleep(Clock::time_point now) {
  const Duration quiet = now - std::max(last_busy_, poster_.lastMoved());
  if (broke_ || quiet < seed_.spin) return false;
  const bool unposted = poster_.starved() || (phase_ == Phase::kProbing && !probe_sent_);
  if (watch_ != 0 && !unposted) return sleepUntilTold(now, quiet);
  if (unposted || poster_.idle()) doze(now, quiet, up() && !unposted);
  return false;
}

bool Channel::sleepUntilTold(Clock::time_point now, Duration quiet) {
  if (!endpoint_->tellsUnarmed() && !armedAWhile(now, quiet)) return false;
  // Told of anew, where it is readable already.
  return endpoint_->arm() && seed_.poller.change(watch_, kNews).has_value();
}

// No event will come: the channel makes progress whenever its rail does, and again when it has been
// quiet for half as long once more.
void Channel::doze(Clock::time_point now, Duration quiet, bool rests) {
  if (rests) tellPolling(false);
  if (doze_ != 0 || peer_polls_) return;
  const Duration longest = rests ? kLongestRest : kLongestDoze;
  doze_ = seed_.poller.at(now + std::min(longest, quiet / 2), [this] { doze_ = 0; });
}

// Tells the peer whether we are polling. A peer without wake-ups polls while we do.
void Channel::tellPolling(bool awake) {
  if (watch_ != 0 || told_polling_ == awake) return;
  told_polling_ = awake;
  host_.tell(PollingNotice{.awake = awake, .channel = seed_.index, .life = life_});
}

void Channel::peerPolling(const PollingNotice& theirs) {
  peer_polls_ = theirs.awake && watch_ == 0;
  if (!peer_polls_ || down() || waiting()) return;
  last_busy_ = Clock::now();
  host_.activate(*this);
}

// Nobody knows what has come in while it was not armed: it sleeps when it has been for a while, and
// nothing came.
bool Channel::armedAWhile(Clock::time_point now, Duration quiet) {
  if (armed_since_) return now - *armed_since_ >= seed_.spin;
  if (quiet >= seed_.spin * unarmed_for_ && endpoint_->arm()) armed_since_ = now;
  return false;
}

void Channel::awake() {
  if (std::exchange(armed_since_, std::nullopt) && endpoint_) endpoint_->disarm();
  if (doze_ != 0) seed_.poller.forgetTimer(std::exchange(doze_, 0));
}

void Channel::lookLater() {
  if (timer_ == 0)
    timer_ = seed_.poller.at(Clock::now() + kLook, [this] {
      timer_ = 0;
      look();
    });
}

void Channel::look() {
  const auto now = Clock::now();
  if (phase_ == Phase::kWaiting || phase_ == Phase::kProbing) {
    if (now >= opening_until_)
      return breakWith(linkError({.code = Code::kTimeout,
                                  .detail = phase_ == Phase::kWaiting
                                                ? "the peer did not open its end in time"
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
void Channel::judgeSilence(Clock::time_point now) {
  if (now - poster_.lastMoved() < poster_.patience()) return;
  if (answers_ >= kEnoughAnswers)
    return breakWith(linkError(
        {.code = Code::kTimeout,
         .detail = "no answer arrived over " + transport_devices_ + ", although the peer is alive",
         .cause = "the path of this rail is cut or has stalled",
         .remedy = "check the link; the agent retries the rail"}));
  if (std::exchange(asked_, true)) return;
  host_.activate(*this);  // it may sleep, and a library may have lost what was to wake it
  host_.tell(PingChannel{.channel = seed_.index, .life = life_});
}

void Channel::answered(const PingChannel& pong) {
  if (pong.life != life_ || !std::exchange(asked_, false)) return;
  ++answers_;
}

}  // namespace viaduct::move
