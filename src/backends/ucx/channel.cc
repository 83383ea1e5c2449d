#include "backends/ucx/channel.h"

#include <sys/epoll.h>

#include <utility>

namespace viaduct::ucx {
namespace {

// How often a channel with something under way is looked at.
constexpr Duration kLook = std::chrono::milliseconds(50);
// The peer's end turns its sockets between two answers: after the second, what it had received is
// no excuse any more.
constexpr int kEnoughAnswers = 2;
// What every probe writes. Registered by nobody: it is eight bytes.
constexpr std::uint64_t kProbeWord = 0x5649414455435421U;

}  // namespace

Channel::Channel(const ChannelSeed& seed, ChannelHost& host, PosterHost& poster_host)
    : seed_(seed), host_(host), poster_(poster_host, seed.own, seed.remote, seed.key) {}

Channel::~Channel() { end(); }

Result<Open> Channel::begin(std::uint32_t life, bool answer) {
  life_ = life;
  VIADUCT_TRY(conduit_, Conduit::open(seed_.context));
  phase_ = Phase::kWaiting;
  opening_until_ = Clock::now() + seed_.opening;
  lookLater();
  return Open{.answer = answer,
              .channel = seed_.index,
              .life = life,
              .worker = conduit_->address(),
              .probe = seed_.probe};
}

Status Channel::join(const Open& theirs) {
  VIADUCT_CHECK(conduit_->join(theirs.worker));
  lanes_ = conduit_->lanes();
  VIADUCT_CHECK(startProbe(theirs.probe));
  VIADUCT_TRY(watch_, seed_.poller.watch(conduit_->fd(), 0,
                                         [this](std::uint32_t) { host_.activate(*this); }));
  phase_ = Phase::kProbing;
  awake_ = true;
  last_busy_ = Clock::now();
  host_.activate(*this);
  return Ok{};
}

// UCX says nothing of a way that leads nowhere before it is used.
Status Channel::startProbe(const Probe& there) {
  const Hush hush;
  // Key 0 is no pin's generation.
  ucp_rkey* const key = conduit_->keyOf(0, there.key);
  if (key == nullptr || !conduit_->put(&kProbeWord, sizeof kProbeWord, there.address, key))
    return conduit_->broken() ? conduit_->whyBroken()
                              : Error{.code = Code::kProtocol,
                                      .operation = "ucx probe",
                                      .detail = "UCX cannot read the peer's key"};
  probe_ = conduit_->flush();
  return Ok{};
}

void Channel::end() {
  if (timer_ != 0) seed_.poller.forgetTimer(std::exchange(timer_, 0));
  if (watch_ != 0) seed_.poller.forget(std::exchange(watch_, 0));
  host_.deactivate(*this);
  phase_ = Phase::kDown;
  broke_.reset();
  if (!conduit_) return;
  conduit_->letGo(probe_);
  poster_.rewind(*conduit_);
  conduit_.reset();
}

void Channel::breakWith(Error why) {
  if (broke_ || down()) return;
  broke_ = std::move(why);
  host_.activate(*this);
}

void Channel::push() {
  if (!up() || broke_) return;
  const Hush hush;
  const bool was_idle = poster_.idle();
  poster_.push(*conduit_);
  if (was_idle && !poster_.idle()) lookLater();
}

void Channel::retireKey(std::uint32_t generation) {
  if (conduit_) conduit_->retire(generation);
}

void Channel::turn(Clock::time_point now, Clock::time_point until) {
  bool moved = false;
  do {
    moved = conduit_->progress();
    if (phase_ == Phase::kProbing && conduit_->ended(probe_)) {
      phase_ = Phase::kUp;
      host_.opened(*this);
      moved = true;
    }
    if (poster_.reap(*conduit_)) {
      asked_ = false;
      answers_ = 0;
      moved = true;
    }
    if (conduit_->broken()) return breakWith(conduit_->whyBroken());
    push();
    if (moved) last_busy_ = now;
  } while (moved && (now = Clock::now()) < until);
}

bool Channel::sleep(Clock::time_point now) {
  if (broke_ || now - last_busy_ < seed_.spin || poster_.starved() || !conduit_->arm())
    return false;
  awake_ = false;
  // Fails only where the descriptor is not watched.
  static_cast<void>(seed_.poller.change(watch_, EPOLLIN));
  return true;
}

void Channel::awake() {
  if (watch_ == 0 || std::exchange(awake_, true)) return;
  last_busy_ = Clock::now();
  static_cast<void>(seed_.poller.change(watch_, 0));
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
      return breakWith({.code = Code::kTimeout,
                        .operation = "ucx open",
                        .detail = phase_ == Phase::kWaiting
                                      ? "the peer did not open its end in time"
                                      : "no byte got through over " + listText(lanes_),
                        .device = "ucx",
                        .cause = "the devices of the two ends do not reach each other"});
    return lookLater();
  }
  if (poster_.idle()) return;
  judgeSilence(now);
  lookLater();
}

// Neither UCX nor the kernel tells of a path that was cut: for minutes nothing comes back, and that
// is all. The session may go another way, and can be asked whether the peer is well.
void Channel::judgeSilence(Clock::time_point now) {
  if (now - poster_.lastMoved() < poster_.patience()) return;
  if (answers_ >= kEnoughAnswers)
    return breakWith(
        {.code = Code::kTimeout,
         .operation = "ucx",
         .detail = "nothing came back over " + listText(lanes_) + ", and the peer is well",
         .device = "ucx",
         .cause = "the path of this rail is cut, or stands still",
         .remedy = "look at the link; the rail is being tried again"});
  if (std::exchange(asked_, true)) return;
  host_.ask({.channel = seed_.index, .life = life_});
}

void Channel::answered(const Ping& pong) {
  if (pong.life != life_ || !std::exchange(asked_, false)) return;
  ++answers_;
}

}  // namespace viaduct::ucx
