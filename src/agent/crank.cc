#include "agent/crank.h"

#include <poll.h>
#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace viaduct::agent {
namespace {

timespec toTimespec(Duration duration) {
  const auto ns = std::max<std::int64_t>(0, std::chrono::nanoseconds(duration).count());
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

}  // namespace

Result<std::unique_ptr<Crank>> Crank::open(Turner& turner, Duration spin) {
  std::unique_ptr<Crank> crank(new Crank(turner, spin));
  VIADUCT_TRY(crank->poller_, base::Poller::open());
  crank->takeover_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!crank->takeover_) return systemError(Code::kExhausted, "timerfd_create", errno);
  return crank;
}

Crank::~Crank() { stop(); }

void Crank::start() {
  thread_ = std::thread([this] { progress(); });
  ::pthread_setname_np(thread_.native_handle(), "viaduct");
}

void Crank::stop() {
  if (!thread_.joinable()) return;
  {
    const Held held(lock_);
    stopping_ = true;
    armed_ = false;
    arm(Duration(1));
  }
  thread_.join();
}

bool Crank::claimed() const { return driven_ || Clock::now() < claim_until_; }

void Crank::arm(Duration in) {
  if (armed_) return;
  armed_ = true;
  const itimerspec spec{.it_interval = {}, .it_value = toTimespec(std::max(in, Duration(1)))};
  ::timerfd_settime(takeover_.get(), 0, &spec, nullptr);
}

void Crank::disarm() {
  std::uint64_t rings = 0;
  if (::read(takeover_.get(), &rings, sizeof rings) > 0) armed_ = false;
}

void Crank::takeOverSoon() {
  if (!driven_) arm(kClaim);
}

void Crank::takeOverNow() {
  if (claimed()) return takeOverSoon();
  armed_ = false;
  arm(Duration(1));
}

// Handles what is ready, waiting for it up to `block_until` with the lock released.
bool Crank::turnOnce(Held& held, Clock::time_point block_until) {
  base::Poller::Events events;
  int count = 0;
  if (block_until > Clock::time_point::min() && !turner_.busy()) {
    const auto until = std::min(block_until, poller_->nextTimer());
    held.unlock();
    count = poller_->block(events, until);
    held.lock();
  } else {
    count = poller_->block(events, Clock::time_point::min());
  }
  unturned_ = 0;
  bool moved = poller_->handle(events, count, Clock::now());
  moved = turner_.turn() || moved;
  if (moved) changed();
  return moved;
}

bool Crank::poll() {
  Held held(lock_);
  const bool moved = turnOnce(held, Clock::time_point::min());
  claim_until_ = Clock::now() + kClaim;
  if (turner_.busy() || poller_->nextTimer() < progress_until_) takeOverSoon();
  const bool owes = turner_.owesCallbacks();
  held.unlock();
  if (owes) turner_.deliver();
  return moved;
}

bool Crank::wait(const std::function<bool()>& done, Clock::time_point until) {
  Held held(lock_);
  return waitHeld(held, done, until);
}

bool Crank::waitHeld(Held& held, const std::function<bool()>& done, Clock::time_point until) {
  bool drives = false;
  auto spin_until = Clock::now() + spin_;
  while (!done()) {
    const auto now = Clock::now();
    if (now >= until) break;
    if (!drives && driven_) {
      follow(held, until);
      continue;
    }
    drives = driven_ = true;
    if (turnOnce(held, now < spin_until ? Clock::time_point::min() : until))
      spin_until = Clock::now() + spin_;
    if (turner_.owesCallbacks()) {
      held.unlock();
      turner_.deliver();
      held.lock();
    }
  }
  if (drives) stopDriving();
  return done();
}

void Crank::follow(Held& held, Clock::time_point until) {
  ++followers_;
  if (until == Clock::time_point::max())
    followers_wake_.wait(held);
  else
    followers_wake_.wait_until(held, until);
  --followers_;
}

void Crank::stopDriving() {
  driven_ = false;
  if (followers_ > 0) followers_wake_.notify_all();  // one of them drives on
  claim_until_ = Clock::now() + kClaim;
  arm(kClaim);
}

// Until the takeover timer rings: a user thread drives, and arms it when it stops.
void Crank::sleepAside(Held& held) {
  if (!driven_) arm(claim_until_ - Clock::now());
  progress_until_ = Clock::time_point::max();
  held.unlock();
  pollfd timer{.fd = takeover_.get(), .events = POLLIN, .revents = 0};
  ::poll(&timer, 1, -1);
  held.lock();
}

void Crank::sleepForEvents(Held& held) {
  progress_until_ = poller_->nextTimer();
  const bool timed = progress_until_ != Clock::time_point::max();
  const timespec left = toTimespec(timed ? progress_until_ - Clock::now() : Duration(0));
  std::array<pollfd, 2> fds{pollfd{.fd = poller_->fd(), .events = POLLIN, .revents = 0},
                            pollfd{.fd = takeover_.get(), .events = POLLIN, .revents = 0}};
  held.unlock();
  ::ppoll(fds.data(), fds.size(), timed ? &left : nullptr, nullptr);
  held.lock();
}

void Crank::progress() {
  Held held(lock_);
  while (!stopping_) {
    disarm();
    if (claimed()) {
      sleepAside(held);
      continue;
    }
    turnOnce(held, Clock::time_point::min());
    if (turner_.owesCallbacks()) {
      held.unlock();
      turner_.deliver();
      held.lock();
    }
    if (stopping_ || claimed()) continue;
    if (turner_.busy()) {  // lets a thread that waits for the lock have it
      held.unlock();
      std::this_thread::yield();
      held.lock();
    } else {
      sleepForEvents(held);
    }
  }
}

}  // namespace viaduct::agent
