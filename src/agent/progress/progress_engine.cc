#include "agent/progress/progress_engine.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace viaduct::agent {

Result<std::unique_ptr<ProgressEngine>> ProgressEngine::open(Progressable& target, Duration spin,
                                                             const base::MovableClock* clock) {
  std::unique_ptr<ProgressEngine> engine(new ProgressEngine(target, spin));
  VIADUCT_TRY(engine->poller_, base::Poller::open(clock));
  engine->outside_.reset(::epoll_create1(EPOLL_CLOEXEC));
  engine->poke_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  engine->call_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event inside{.events = 0, .data = {.fd = engine->poller_->fd()}};
  epoll_event call{.events = EPOLLIN | EPOLLET, .data = {.fd = engine->call_.get()}};
  if (!engine->outside_ || !engine->poke_ || !engine->call_ ||
      ::epoll_ctl(engine->outside_.get(), EPOLL_CTL_ADD, inside.data.fd, &inside) != 0 ||
      ::epoll_ctl(engine->outside_.get(), EPOLL_CTL_ADD, call.data.fd, &call) != 0)
    return systemError(Code::kExhausted, "open the agent's loop", errno);
  const auto poked = [self = engine.get()](std::uint32_t) { self->silence(); };
  VIADUCT_CHECK(engine->poller_->watch(engine->poke_.get(), EPOLLIN, poked));
  return engine;
}

void ProgressEngine::silence() {
  std::uint64_t pokes = 0;
  if (::read(poke_.get(), &pokes, sizeof pokes) > 0) poked_ = false;
}

ProgressEngine::~ProgressEngine() { stop(); }

Status ProgressEngine::start(unsigned helpers) {
  try {
    thread_ = std::thread([this] {
      // Set by the thread itself: for another thread, glibc would write to a file in /proc.
      ::pthread_setname_np(::pthread_self(), "viaduct");
      runProgressThread();
    });
  } catch (const std::system_error& failed) {
    return systemError(Code::kExhausted, "start the progress thread", failed.code().value());
  }
  try {
    for (unsigned i = 0; i < helpers; ++i)
      helpers_.emplace_back([this] {
        ::pthread_setname_np(::pthread_self(), "viaduct-rails");
        runHelper();
      });
  } catch (const std::system_error&) {
    return Ok{};  // The limit of threads is reached. The other threads poll all rails.
  }
  return Ok{};
}

void ProgressEngine::stop() {
  if (!thread_.joinable()) return;
  {
    const Exclusive exclusive(lock_);
    stopping_ = true;
    arm(true);
    poke();
    // After a poke, a waiting thread might wake first and disarm the poller. call() surely wakes
    // the progress thread.
    call();
  }
  helpers_end_ = true;
  ++helpers_bell_;
  helpers_bell_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
  thread_.join();
}

// Returns false if the table has no such step.
bool ProgressEngine::step(ProgressThread::Event event) {
  auto state = thread_state_.load(std::memory_order_relaxed);
  while (const auto next = base::Machine<ProgressThread>::after(state, event))
    if (thread_state_.compare_exchange_weak(state, *next, std::memory_order_relaxed)) return true;
  return false;
}

// Sets whether the next event of the poller wakes the progress thread. One event wakes that thread,
// and disarms the poller.
void ProgressEngine::arm(bool on) {
  epoll_event inside{.events = on ? EPOLLIN | EPOLLONESHOT : 0U, .data = {.fd = poller_->fd()}};
  // Cannot fail, because both descriptors belong to the engine and are open.
  ::epoll_ctl(outside_.get(), EPOLL_CTL_MOD, poller_->fd(), &inside);
  armed_ = on;
}

void ProgressEngine::poke() {
  if (std::exchange(poked_, true)) return;
  const std::uint64_t one = 1;
  // Cannot block below a count of 2^64 - 2.
  [[maybe_unused]] const auto written = ::write(poke_.get(), &one, sizeof one);
}

bool ProgressEngine::leavesWork() const {
  return target_.busy() || poller_->nextTimer() < std::min(progress_until_, driver_until_);
}

void ProgressEngine::takeOverSoon(Clock::time_point now) {
  if (!leavesWork()) return;
  // A thread that only starts work, and never polls, must not keep the progress thread off for
  // ever.
  if (!backsOff() && !userExpected(now)) expectUser(now);
  takeOverNow();
}

// Pokes only a driving thread, since a poke would also wake a user's loop that watches eventFd().
// Such a loop cannot do work that waits for a timer. It would poll again and again, until the
// progress thread gets a processor.
void ProgressEngine::takeOverNow() {
  round_wanted_ = true;
  if (driven_)
    poke();
  else
    callAsleep();
  if (target_.busy()) target_.callLoop();
}

// Wakes the progress thread, even if another thread sleeps on the poller.
void ProgressEngine::call() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(call_.get(), &one, sizeof one);
}

// Calls a progress thread that sleeps. In any other state the thread looks for work by itself
// before it sleeps.
void ProgressEngine::callAsleep() {
  // Nearly every poll comes here, so the table is only read in the state that may change.
  const auto state = thread_state_.load(std::memory_order_relaxed);
  if (state == ProgressThread::kSleeps && step(ProgressThread::kCall)) call();
}

// Handles ready events. Waits for them until `block_until`, with the lock released.
bool ProgressEngine::handleEvents(Clock::time_point now, Clock::time_point block_until) {
  base::Poller::Events events;
  int count = 0;
  if (block_until > Clock::time_point::min() && !target_.busy() && target_.allowWakeups()) {
    if (armed_) arm(false);
    driver_until_ = std::min(block_until, poller_->nextTimer());
    const auto block_now_until = driver_until_;
    driver_sleeps_ = true;
    lock_.unlock();
    count = poller_->block(events, block_now_until);
    lock_.lock();
    driver_sleeps_ = false;
    driver_until_ = Clock::time_point::max();
    now = poller_->now();
  } else if (now - asked_ >= askEvery()) {
    count = poller_->block(events, Clock::time_point::min());
    asked_ = now;
  }
  posts_since_progress_ = 0;
  if (count <= 0 && poller_->nextTimer() > now) return false;
  target_.stopRails();
  const bool any = poller_->handle(events, count, now);
  target_.startRails();
  return any;
}

Duration ProgressEngine::askEvery() const {
  if (target_.busy()) return kAskBusy;
  return target_.wakeupsSuppressed() ? kAskWhileSuppressed : Duration::zero();
}

bool ProgressEngine::progressOnce(Clock::time_point now) {
  bool moved = handleEvents(now, Clock::time_point::min());
  moved = makeProgress() || moved;
  if (moved) changed();
  return moved;
}

// Runs the busy rails first, side by side with other threads and without the lock. If another
// thread runs one of them, that thread applies its completions.
bool ProgressEngine::makeProgress() {
  round_wanted_ = false;
  if (const unsigned busy = target_.busyRails(); busy != 0) {
    if (busy > 1) callHelpers();
    lock_.unlock();
    target_.runRails();
    lock_.lock();
  }
  return target_.progress();
}

// Called after a round whose thread does not sleep. The round may have taken the event that would
// have woken a sleeping thread.
void ProgressEngine::afterProgress() {
  if (!target_.wakeupsSuppressed()) {
    if (!target_.allowWakeups()) takeOverNow();
  } else if (!driven_) {
    // The user thread polls in a loop, and writers may no longer wake the poller. So the progress
    // thread backs off instead of sleeping: it takes over when that thread stops.
    callAsleep();
  }
}

void ProgressEngine::progressNow() {
  progressOnce(poller_->now());
  afterProgress();
}

bool ProgressEngine::poll() {
  lock_.lock();
  const auto now = poller_->now();
  if (userExpected(now) && !driven_) target_.suppressWakeups();  // the user thread polls in a loop
  const bool moved = progressOnce(now);
  const bool yields = yieldsAfter(now, moved);
  expectUser(polled_at_);
  afterProgress();
  if (leavesWork()) takeOverNow();
  const bool owes = target_.owesCallbacks();
  lock_.unlock();
  if (owes) target_.runCallbacks();
  if (yields) std::this_thread::yield();
  return moved;
}

// Takes note of a round that began at `now`. True: the rounds of this loop have moved nothing for a
// while, so the thread yields its processor, which a peer may need. A yield that lets another
// process run ends the loop, so that the next one lasts as long again.
bool ProgressEngine::yieldsAfter(Clock::time_point now, bool moved) {
  const bool in_a_loop = now - polled_at_ < kPollLoop;
  // A round that moves nothing takes as long as reading the clock, so the old time will do.
  polled_at_ = moved ? poller_->now() : now;
  if (moved || !in_a_loop) moved_at_ = polled_at_;
  return now - moved_at_ >= kYieldAfter && target_.awaitsPeers();
}

bool ProgressEngine::wait(const std::function<bool()>& done, Clock::time_point until,
                          base::Watchers* watchers) {
  const Exclusive exclusive(lock_);
  return waitHeld(done, until, watchers);
}

bool ProgressEngine::waitHeld(const std::function<bool()>& done, Clock::time_point until,
                              base::Watchers* watchers) {
  if (done()) return true;
  if (watchers != nullptr && base::Attempt::refuses(*watchers)) return false;
  until = poller_->fromSteady(until);
  bool drives = false;
  const auto begun = poller_->now();
  const bool again = userExpected(begun);
  auto spin_until = begun + spin_;
  while (!done()) {
    const auto now = poller_->now();
    if (now >= until) break;
    if (!drives && driven_) {
      waitBeside(now, spin_until, until);
      continue;
    }
    // A thread that begins to drive makes progress once before it sleeps. This does the work that
    // was left for the progress thread, which keeps off from now on.
    const bool begins = !std::exchange(drives, true);
    driven_ = true;
    const bool spins = begins || now < spin_until;
    const bool moved = drive(now, spins ? Clock::time_point::min() : until, done);
    if (moved) spin_until = polled_at_ + spin_;
    lock_.giveWay();
  }
  if (drives) stopDriving(again);
  return done();
}

// The driving thread cannot sleep, because no event tells of the next progress. It releases the
// lock for a moment, and the processor, which the peer may need. Where threads outnumber
// processors, the peer would otherwise wait until this thread's time slice is over.
void ProgressEngine::yieldLock() {
  lock_.unlock();
  std::this_thread::yield();
  lock_.lock();
}

// Makes one round of progress, for a thread that waits for `done`. After a while of rounds that
// move nothing, yields the processor.
bool ProgressEngine::drive(Clock::time_point now, Clock::time_point block_until,
                           const std::function<bool()>& done) {
  if (block_until == Clock::time_point::min()) {
    target_.suppressWakeups();
    expectUser(now);
  }
  bool moved = handleEvents(now, block_until);
  // If an event fulfilled the condition and nothing is busy, returns to the caller at once.
  // Otherwise does the remaining work, on which the condition may depend: a note may come from a
  // peer that is not yet ready.
  if (!moved || target_.busy() || !done()) moved = makeProgress() || moved;
  if (moved) changed();
  callBack();
  if (yieldsAfter(now, moved)) yieldLock();
  return moved;
}

void ProgressEngine::callBack() {
  if (!target_.owesCallbacks()) return;
  lock_.unlock();
  target_.runCallbacks();
  lock_.lock();
}

// For a waiting thread while another one drives. Until `spin_until` it helps with busy rails, and
// then it sleeps.
void ProgressEngine::waitBeside(Clock::time_point now, Clock::time_point spin_until,
                                Clock::time_point until) {
  if (now < spin_until && target_.busyRails() > 1)
    progressToo();
  else
    follow(until);
}

void ProgressEngine::follow(Clock::time_point until) {
  ++followers_;
  if (until == Clock::time_point::max())
    followers_wake_.wait(lock_);
  else
    followers_wake_.wait_until(lock_, poller_->toSteady(until));
  --followers_;
}

// `again`: a user thread polled or waited shortly before this wait. If this wait was short too, the
// poller stays disarmed: otherwise each event of the next waits would wake the progress thread as
// well.
void ProgressEngine::stopDriving(bool again) {
  driven_ = false;
  changed();  // another waiting thread drives from now on
  const auto now = poller_->now();
  const bool soon = again && userExpected(now);
  expectUser(now);
  if (!target_.allowWakeups()) takeOverNow();
  if (soon)
    callAsleep();
  else if (!armed_ && !backsOff())
    arm(true);
  takeOverSoon(now);
}

// Takes the lock for the progress thread, once no user thread has polled or waited for
// a while. A thread that posts and waits in a loop frees the lock only for moments. Blocking on the
// lock would cost that thread two system calls each time, and would rarely succeed.
void ProgressEngine::takeLock() {
  for (int i = 0; i < kLockTries; ++i) {
    while (userExpected(poller_->now())) {
      step(ProgressThread::kBackOff);
      std::this_thread::sleep_until(
          poller_->toSteady(user_expected_until_.load(std::memory_order_relaxed)));
    }
    if (lock_.try_lock()) {
      step(ProgressThread::kWork);
      return;
    }
    std::this_thread::yield();
  }
  lock_.lock();
  step(ProgressThread::kWork);
}

// Sleeps until an event comes while the poller is armed, or a timer is due.
void ProgressEngine::sleepOutside() {
  progress_until_ = poller_->nextTimer();
  const int wait_ms = poller_->waitFor(progress_until_);
  step(ProgressThread::kSleep);
  lock_.unlock();
  epoll_event event;
  const int woken = ::epoll_wait(outside_.get(), &event, 1, wait_ms);
  takeLock();
  if (woken > 0 && event.data.fd == poller_->fd()) armed_ = false;
}

// A waiting thread that does not drive also runs rails before it sleeps.
void ProgressEngine::progressToo() {
  if (makeProgress()) changed();
  callBack();
}

void ProgressEngine::callHelpers() {
  if (helpers_asleep_ == 0) return;
  ++helpers_bell_;
  helpers_bell_.notify_all();
}

// A thread that makes progress wakes the helpers when several rails are busy.
void ProgressEngine::runHelper() {
  while (true) {
    const std::uint32_t heard = helpers_bell_.load();
    if (helpers_end_) return;
    const bool was_busy = target_.runRails();
    if (target_.hasNews()) {
      const Exclusive exclusive(lock_);
      if (target_.progress()) changed();
      callBack();
    }
    if (was_busy) {
      std::this_thread::yield();
      continue;
    }
    ++helpers_asleep_;
    helpers_bell_.wait(heard);
    --helpers_asleep_;
  }
}

void ProgressEngine::runProgressThread() {
  takeLock();
  while (!stopping_) {
    if (userExpected(poller_->now())) {
      lock_.unlock();
      takeLock();
    } else if (driven_) {  // when it stops, the driving thread arms the poller or calls this one
      sleepOutside();
    } else {
      progressOnce(poller_->now());
      callBack();
      if (stopping_ || driven_ || round_wanted_ || userExpected(poller_->now())) continue;
      if (target_.busy() || !target_.allowWakeups()) {
        lock_.giveWay();
        lock_.unlock();
        std::this_thread::yield();
        takeLock();
      } else {
        arm(true);
        sleepOutside();
      }
    }
  }
  lock_.unlock();
}

}  // namespace viaduct::agent
