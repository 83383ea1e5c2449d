#include "agent/crank.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace viaduct::agent {

Result<std::unique_ptr<Crank>> Crank::open(Turner& turner, Duration spin) {
  std::unique_ptr<Crank> crank(new Crank(turner, spin));
  VIADUCT_TRY(crank->poller_, base::Poller::open());
  crank->outside_.reset(::epoll_create1(EPOLL_CLOEXEC));
  crank->poke_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  crank->call_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event inside{.events = 0, .data = {.fd = crank->poller_->fd()}};
  epoll_event call{.events = EPOLLIN | EPOLLET, .data = {.fd = crank->call_.get()}};
  if (!crank->outside_ || !crank->poke_ || !crank->call_ ||
      ::epoll_ctl(crank->outside_.get(), EPOLL_CTL_ADD, inside.data.fd, &inside) != 0 ||
      ::epoll_ctl(crank->outside_.get(), EPOLL_CTL_ADD, call.data.fd, &call) != 0)
    return systemError(Code::kExhausted, "open the agent's loop", errno);
  const auto silence = [self = crank.get()](std::uint32_t) {
    std::uint64_t pokes = 0;
    if (::read(self->poke_.get(), &pokes, sizeof pokes) > 0) self->poked_ = false;
  };
  VIADUCT_CHECK(crank->poller_->watch(crank->poke_.get(), EPOLLIN, silence));
  return crank;
}

Crank::~Crank() { stop(); }

void Crank::start() {
  thread_ = std::thread([this] {
    // From outside, glibc would write the name to a file in /proc.
    ::pthread_setname_np(::pthread_self(), "viaduct");
    progress();
  });
}

void Crank::stop() {
  if (!thread_.joinable()) return;
  {
    const Held held(lock_);
    stopping_ = true;
    arm(true);
    poke();
    call();  // a waiting thread may take the poke, and disarm the poller, before it wakes ours
  }
  thread_.join();
}

// Whether the next event of the poller wakes the progress thread. It does so once, then the poller
// is disarmed until it is armed again.
void Crank::arm(bool on) {
  epoll_event inside{.events = on ? EPOLLIN | EPOLLONESHOT : 0U, .data = {.fd = poller_->fd()}};
  // Both descriptors are ours and open: it cannot fail.
  ::epoll_ctl(outside_.get(), EPOLL_CTL_MOD, poller_->fd(), &inside);
  armed_ = on;
}

void Crank::poke() {
  if (std::exchange(poked_, true)) return;
  const std::uint64_t one = 1;
  // An eventfd takes one more unless 2^64 - 2 are in it.
  [[maybe_unused]] const auto written = ::write(poke_.get(), &one, sizeof one);
}

bool Crank::leavesWork() const {
  return turner_.busy() || poller_->nextTimer() < std::min(progress_until_, driver_until_);
}

void Crank::takeOverSoon(Clock::time_point now) {
  if (!leavesWork()) return;
  // Who starts more and more, and never comes back, does not keep the progress thread off.
  if (!isAside() && !claimed(now)) claim(now);
  takeOverNow();
}

void Crank::takeOverNow() {
  // Aside it looks soon by itself, but not while another thread drives.
  if (!isAside() || driven_) poke();
}

// Wakes the progress thread, whoever has the poller.
void Crank::call() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(call_.get(), &one, sizeof one);
}

// A user thread polls or waits again and again, and may have told others that they need not wake
// anybody: the progress thread looks when that thread stops coming.
void Crank::callAside() {
  if (!isAside() && !std::exchange(called_, true)) call();
}

// Handles the events that are ready, waiting for them up to `block_until` with the lock released.
bool Crank::handleEvents(Held& held, Clock::time_point now, Clock::time_point block_until) {
  base::Poller::Events events;
  int count = 0;
  if (block_until > Clock::time_point::min() && !turner_.busy() && turner_.listen()) {
    if (armed_) arm(false);
    driver_until_ = std::min(block_until, poller_->nextTimer());
    held.unlock();
    count = poller_->block(events, driver_until_);
    held.lock();
    driver_until_ = Clock::time_point::max();
    now = Clock::now();
  } else if (now - asked_ >= askEvery()) {
    count = poller_->block(events, Clock::time_point::min());
    asked_ = now;
  }
  unturned_ = 0;
  return poller_->handle(events, count, now);
}

Duration Crank::askEvery() const {
  if (turner_.busy()) return kAskBusy;
  return turner_.hushed() ? kAskHushed : Duration::zero();
}

bool Crank::turnOnce(Held& held, Clock::time_point now) {
  bool moved = handleEvents(held, now, Clock::time_point::min());
  moved = turner_.turn() || moved;
  if (moved) changed();
  return moved;
}

// After a turn whose thread does not sleep: it may have taken what was to wake those who do.
void Crank::leaveTurn() {
  if (!turner_.hushed()) {
    if (!turner_.listen()) takeOverNow();
  } else if (!driven_) {
    callAside();
  }
}

void Crank::turnNow(Held& held) {
  turnOnce(held, Clock::now());
  leaveTurn();
}

bool Crank::poll() {
  Held held(lock_);
  const auto now = Clock::now();
  if (claimed(now) && !driven_) turner_.hush();  // it polls again and again
  const bool moved = turnOnce(held, now);
  // The clock costs what a turn that moves nothing does.
  claim(moved ? Clock::now() : now);
  leaveTurn();
  if (leavesWork()) takeOverNow();
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
  const auto begun = Clock::now();
  const bool again = claimed(begun);
  auto spin_until = begun + spin_;
  while (!done()) {
    const auto now = Clock::now();
    if (now >= until) break;
    if (!drives && driven_) {
      follow(held, until);
      continue;
    }
    // Whoever begins to drive turns once before it sleeps: what was left to the progress thread,
    // which keeps off from now on, is done.
    const bool begins = !std::exchange(drives, true);
    driven_ = true;
    const bool spins = begins || now < spin_until;
    if (drive(held, now, spins ? Clock::time_point::min() : until, done))
      spin_until = Clock::now() + spin_;
    else if (!spins && turner_.busy())
      letOthersHaveIt(held);
  }
  if (drives) stopDriving(again);
  return done();
}

// Of a thread that cannot sleep, since only turning makes progress: the lock, and the processor,
// on which the peer may be waiting for its turn.
void Crank::letOthersHaveIt(Held& held) {
  held.unlock();
  std::this_thread::yield();
  held.lock();
}

// One turn of a thread that waits for `done`.
bool Crank::drive(Held& held, Clock::time_point now, Clock::time_point block_until,
                  const std::function<bool()>& done) {
  if (block_until == Clock::time_point::min()) {
    turner_.hush();
    claim(now);
  }
  bool moved = handleEvents(held, now, block_until);
  // When an event has brought what is waited for, and left nothing else to do, nothing stands
  // between it and the caller. What is left may be what the caller counts on: that a peer whose
  // note came is ready.
  if (!moved || turner_.busy() || !done()) moved = turner_.turn() || moved;
  if (moved) changed();
  callBack(held);
  return moved;
}

void Crank::callBack(Held& held) {
  if (!turner_.owesCallbacks()) return;
  held.unlock();
  turner_.deliver();
  held.lock();
}

void Crank::follow(Held& held, Clock::time_point until) {
  ++followers_;
  if (until == Clock::time_point::max())
    followers_wake_.wait(held);
  else
    followers_wake_.wait_until(held, until);
  --followers_;
}

// `again`: the thread was here a moment before it waited. Where it did not wait long either, each
// event that it waits for next would wake the progress thread as well, were the poller armed.
void Crank::stopDriving(bool again) {
  driven_ = false;
  changed();  // one of the followers drives on
  const auto now = Clock::now();
  const bool soon = again && claimed(now);
  claim(now);
  if (!turner_.listen()) takeOverNow();
  if (soon)
    callAside();
  else if (!armed_ && !isAside())
    arm(true);
  takeOverSoon(now);
}

// The progress thread, which does not have the lock, takes it: when no user thread has polled or
// waited for a while. One that posts and waits in a loop leaves the lock for moments only: to wait
// for it would cost that thread two system calls each time, and hardly ever get it.
void Crank::takeLock(Held& held) {
  for (int i = 0; i < kLockTries; ++i) {
    while (claimed(Clock::now())) {
      aside_.store(true, std::memory_order_relaxed);
      std::this_thread::sleep_until(claim_until_.load(std::memory_order_relaxed));
    }
    if (held.try_lock()) break;
    std::this_thread::yield();
  }
  if (!held.owns_lock()) held.lock();
  aside_.store(false, std::memory_order_relaxed);
}

// Until an event comes while the poller is armed, or a timer is due.
void Crank::sleepOutside(Held& held) {
  progress_until_ = poller_->nextTimer();
  const int wait_ms = base::Poller::waitFor(progress_until_);
  held.unlock();
  epoll_event event;
  const int woken = ::epoll_wait(outside_.get(), &event, 1, wait_ms);
  takeLock(held);
  if (woken > 0 && event.data.fd == poller_->fd()) armed_ = false;
  called_ = false;
}

void Crank::progress() {
  Held held(lock_, std::defer_lock);
  takeLock(held);
  while (!stopping_) {
    if (claimed(Clock::now())) {
      held.unlock();
      takeLock(held);
    } else if (driven_) {  // who arms the poller when it stops driving
      sleepOutside(held);
    } else {
      turnOnce(held, Clock::now());
      callBack(held);
      if (stopping_ || driven_ || claimed(Clock::now())) continue;
      if (turner_.busy() || !turner_.listen()) {  // lets a thread that waits for the lock have it
        held.unlock();
        std::this_thread::yield();
        takeLock(held);
      } else {
        arm(true);
        sleepOutside(held);
      }
    }
  }
}

}  // namespace viaduct::agent
