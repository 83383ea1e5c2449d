#include "agent/progress/progress_engine.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/shortage.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

// Counts the events of an eventfd, and owes a callback for each event if `owes` is set.
class Bells final : public Progressable {
 public:
  bool progress() override {
    ++rounds;
    return std::exchange(left, false);
  }
  bool busy() const override { return left || sleepless; }
  unsigned busyRails() const override { return 0; }
  bool runRails() override { return false; }
  bool awaitsPeers() const override { return busy(); }
  bool hasNews() const override { return false; }
  void stopRails() override {}
  void startRails() override {}
  bool allowWakeups() override { return true; }
  void suppressWakeups() override {}
  bool wakeupsSuppressed() const override { return false; }
  void callLoop() override { ++loop_calls; }
  bool owesCallbacks() const override { return owed_ > 0; }
  void runCallbacks() override {
    {
      const std::lock_guard held(engine->lock());
      called += owed_;
      owed_ = 0;
    }
    if (callback) callback();
  }

  void open(Duration spin, unsigned helpers = 0) {
    engine = std::move(*ProgressEngine::open(*this, spin));
    ASSERT_TRUE(engine->poller().watch(bell.get(), EPOLLIN, [this](std::uint32_t) {
      std::uint64_t value = 0;
      if (::read(bell.get(), &value, sizeof value) > 0) {
        rung += static_cast<int>(value);
        if (owes) owed_ += 1;
        left = leaves;
        handler = std::this_thread::get_id();
      }
    }));
    ASSERT_TRUE(engine->start(helpers));
  }
  void ring() const {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(bell.get(), &one, sizeof one), 8);
  }
  // Waits until the progress thread has fulfilled the condition.
  bool reaches(const std::function<bool()>& condition) const {
    const auto met = [&] {
      const std::lock_guard held(engine->lock());
      return condition();
    };
    const auto until = Clock::now() + 5s;
    while (!met() && Clock::now() < until) std::this_thread::yield();
    return met();
  }
  // Waits for event number `number`, which another thread sends during this wait.
  bool waitForRing(int number) {
    // wait() calls `done` first with the lock held, and only then the event is sent. So the waiting
    // thread should handle it, not the progress thread.
    std::atomic<bool> asked{false};
    std::jthread ringer([&] {
      asked.wait(false);
      ring();
    });
    const auto done = [&] {
      asked = true;
      asked.notify_one();
      return rung >= number;
    };
    return engine->wait(done, Clock::now() + 5s);
  }

  base::Fd bell{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  int rung = 0, called = 0, rounds = 0, loop_calls = 0;
  bool leaves = false;     // each event leaves work for the next round of progress
  bool sleepless = false;  // no event announces the next progress
  bool left = false;
  bool owes = true;  // each event owes a callback
  std::function<void()> callback;
  std::thread::id handler;
  std::unique_ptr<ProgressEngine> engine;

 private:
  int owed_ = 0;
};

TEST(ProgressEngine, TheProgressThreadRunsTheLoopWhenNoUserThreadDoes) {
  Bells bells;
  bells.open(0us);
  bells.ring();
  EXPECT_TRUE(bells.reaches([&] { return bells.called == 1; }));
  bells.engine->stop();
}

TEST(ProgressEngine, AWaitingThreadRunsTheLoopItself) {
  Bells bells;
  bells.open(0us);
  for (int i = 1; i <= 50; ++i) {
    EXPECT_TRUE(bells.waitForRing(i));
    EXPECT_EQ(bells.handler, std::this_thread::get_id()) << "event " << i;
  }
  bells.engine->stop();
}

// A wait also does the work that its event has left. For example, a note arrives right behind the
// message that makes its sender ready, and the receiver of the note may want to answer at once.
TEST(ProgressEngine, AWaitEndsAfterTheWorkThatItsEventHasLeft) {
  Bells bells;
  bells.open(0us);
  bells.leaves = true;
  for (int i = 1; i <= 50; ++i) {
    EXPECT_TRUE(bells.waitForRing(i));
    const std::lock_guard held(bells.engine->lock());
    EXPECT_FALSE(bells.left) << "event " << i;
  }
  bells.engine->stop();
}

// The awaited work may be left over from an earlier round, with no event to wake the thread.
TEST(ProgressEngine, AWaitingThreadMakesProgressOnceBeforeItSleeps) {
  Bells bells;
  bells.open(0us);
  for (int i = 0; i < 20; ++i) {
    std::optional<int> before;
    const auto done = [&] { return bells.rounds > before.emplace(before.value_or(bells.rounds)); };
    EXPECT_TRUE(bells.engine->wait(done, Clock::now() + 5s));
  }
  bells.engine->stop();
}

// For example, the progress thread runs a callback while another thread begins to wait.
TEST(ProgressEngine, AChangeByAnotherThreadWakesTheDrivingThread) {
  Bells bells;
  bells.open(0us);
  for (int i = 0; i < 20; ++i) {
    bool changed = false;
    std::atomic<bool> waits{false};
    std::jthread changer([&] {
      waits.wait(false);
      const std::lock_guard held(bells.engine->lock());
      changed = true;
      bells.engine->changed();
    });
    const auto done = [&] {
      waits = true;
      waits.notify_one();
      return changed;
    };
    const auto start = Clock::now();
    ASSERT_TRUE(bells.engine->wait(done, start + 60s));
    ASSERT_LT(Clock::now() - start, 30s) << "change " << i;
  }
  bells.engine->stop();
}

TEST(ProgressEngine, AWaitWithoutItsEventEndsAtItsTime) {
  Bells bells;
  bells.open(20us);
  const auto start = Clock::now();
  EXPECT_FALSE(bells.engine->wait([] { return false; }, start + 20ms));
  EXPECT_GE(Clock::now() - start, 20ms);
  bells.engine->stop();
}

TEST(ProgressEngine, ManyWaitingThreadsAllSeeTheirEvent) {
  Bells bells;
  bells.open(5us);
  std::atomic<int> seen{0};
  std::vector<std::thread> waiters;
  for (int i = 1; i <= 8; ++i)
    waiters.emplace_back([&, i] {
      if (bells.engine->wait([&, i] { return bells.rung >= i; }, Clock::now() + 10s)) ++seen;
    });
  for (int i = 0; i < 8; ++i) bells.ring();
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(seen, 8);
  bells.engine->stop();
}

// The number of times that the thread of that name has slept, or waited for the lock. -1: no thread
// has the name yet.
long sleepsOf(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string line, found;
    std::ifstream comm(task.path() / "comm"), status(task.path() / "status");
    std::getline(comm, found);
    if (found != name) continue;
    while (std::getline(status, line))
      if (line.starts_with("voluntary_ctxt_switches:")) return std::stol(line.substr(24));
  }
  return -1;
}

// The progress thread wakes once a millisecond, not at each event, nor each time that the lock is
// free.
TEST(ProgressEngine, TheProgressThreadKeepsOffWhileAThreadWaitsInALoop) {
  constexpr int kWaits = 5000;
  Bells bells;
  bells.owes = false;
  bells.open(1ms);
  const auto start = Clock::now();
  long before = -1;
  while ((before = sleepsOf("viaduct")) < 0) std::this_thread::yield();
  for (int i = 1; i <= kWaits; ++i) {
    bells.ring();
    const auto due = Clock::now() + 10us;
    const auto done = [&] { return bells.rung >= i && Clock::now() >= due; };
    ASSERT_TRUE(bells.engine->wait(done, Clock::now() + 5s));
  }
  const long sleeps = sleepsOf("viaduct") - before;
  const auto took = std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - start);
  EXPECT_LT(sleeps, 20 + 3 * took.count()) << kWaits << " waits in " << took.count() << " ms";
  bells.engine->stop();
}

// The agent works without helpers, which only make polls of many rails faster.
TEST(ProgressEngine, RunsWithoutHelpersIfNoMoreThreadsStart) {
  Bells bells;
  {
    const testing::ThreadShortage shortage(1);
    bells.open(0us, 8);
  }
  EXPECT_TRUE(bells.waitForRing(1));
  bells.engine->stop();
}

// If one thread starts work and never waits, the progress thread carries the work out.
TEST(ProgressEngine, AThreadThatNeverWaitsDoesNotBlockTheProgressThread) {
  Bells bells;
  bells.open(0us);
  bool started = false, moved = false;
  for (int i = 0; !moved && i < 500; ++i) {
    std::unique_lock held(bells.engine->lock());
    moved = started && !bells.left;
    started = bells.left = true;
    bells.engine->takeOverSoon(Clock::now());
    held.unlock();
    std::this_thread::sleep_for(100us);
  }
  EXPECT_TRUE(moved);
  bells.engine->stop();
}

// Has the progress thread run a callback until the end of the test, or until letGo().
class HeldThread : public ::testing::Test {
 public:
  void SetUp() override {
    bells.callback = [this] {
      if (holds.exchange(true)) return;
      holds.notify_one();
      goes_on.wait(false);
    };
    bells.open(0us);
    bells.ring();
    holds.wait(false);
  }
  void TearDown() override {
    letGo();
    bells.engine->stop();
  }
  void letGo() {
    goes_on = true;
    goes_on.notify_one();
  }

  std::atomic<bool> holds = false, goes_on = false;
  Bells bells;
};

// A wake-up through the loop's descriptor would make the loop poll again and again, until the
// progress thread gets a processor.
TEST_F(HeldThread, IsNotWokenByWayOfTheLoopThatPolls) {
  {
    const std::lock_guard held(bells.engine->lock());
    bells.engine->poller().at(Clock::now() + 1h, [] {});
  }
  bells.engine->poll();
  pollfd loop{.fd = bells.engine->poller().fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&loop, 1, 0), 0);
  EXPECT_EQ(bells.loop_calls, 0);
}

// The polling loop moves busy rails sooner than another thread could.
TEST_F(HeldThread, LeavesBusyRailsToTheLoopThatPolls) {
  bells.sleepless = true;
  bells.engine->poll();
  EXPECT_EQ(bells.loop_calls, 1);
  bells.sleepless = false;
  bells.engine->poll();
  EXPECT_EQ(bells.loop_calls, 1);
}

TEST_F(HeldThread, DoesTheWorkThatWasLeftMeanwhile) {
  int rounds = 0;
  {
    const std::lock_guard held(bells.engine->lock());
    rounds = bells.rounds;
    bells.engine->takeOverNow();
  }
  letGo();
  EXPECT_TRUE(bells.reaches([&] { return bells.rounds > rounds; }));
}

// Waiting for a busy rail may take long, so other threads get the lock meanwhile.
TEST(ProgressEngine, AWaitingThreadThatCannotSleepYieldsTheLock) {
  Bells bells;
  bells.sleepless = true;
  bells.open(0us);
  std::atomic<bool> drives = false;
  bool over = false, ended = false;
  std::jthread waiter([&] {
    const auto done = [&] {
      drives = true;
      drives.notify_one();
      return over;
    };
    ended = bells.engine->wait(done, Clock::now() + 10s);
  });
  drives.wait(false);
  {
    const std::lock_guard held(bells.engine->lock());
    over = true;
  }
  waiter.join();
  EXPECT_TRUE(ended);
  bells.engine->stop();
}

TEST(ProgressEngine, TheProgressThreadIsWokenOnceAndOnlyFromItsSleep) {
  using Thread = ProgressThread;
  using Machine = base::Machine<Thread>;
  for (const auto state : {Thread::kWorks, Thread::kSleeps, Thread::kCalled, Thread::kBacksOff}) {
    const bool sleeps = state == Thread::kSleeps, works = state == Thread::kWorks;
    EXPECT_EQ(Machine::after(state, Thread::kCall).has_value(), sleeps);
    EXPECT_EQ(Machine::after(state, Thread::kSleep).has_value(), works);
    EXPECT_EQ(Machine::after(state, Thread::kBackOff), Thread::kBacksOff);
    EXPECT_EQ(Machine::after(state, Thread::kWork), Thread::kWorks);
  }
  EXPECT_EQ(Machine::after(Thread::kSleeps, Thread::kCall), Thread::kCalled);
  EXPECT_EQ(Machine::after(Thread::kWorks, Thread::kSleep), Thread::kSleeps);
}

}  // namespace
}  // namespace viaduct::agent
