#include "cuda/driver_thread.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "cuda/driver_thread_testing.h"

namespace viaduct::cuda {
namespace {

// A thread, as LongWork uses it.
struct Thread {
  void (*const start)(std::function<void()> work);
  void (*const wait_for_all)();
};
const Thread kEnder{[](auto work) { endLater(std::move(work)); }, &testing::waitForEnds};
const Thread kRegistrar{[](auto work) { EXPECT_TRUE(onRegistrar(std::move(work))); },
                        &testing::waitForRegistrar};
const Thread kPatientRegistrar{
    [](auto work) { EXPECT_TRUE(onRegistrar(std::move(work), std::chrono::hours(1))); },
    &testing::waitForRegistrar};

// Work that lasts until the object's end.
class LongWork {
 public:
  explicit LongWork(const Thread& thread) : thread_(thread) {
    thread.start([this] {
      begun_.set_value();
      over_.get_future().wait();
    });
    begun_.get_future().wait();
  }
  ~LongWork() {
    over_.set_value();
    thread_.wait_for_all();
  }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

 private:
  const Thread& thread_;
  std::promise<void> begun_, over_;
};

TEST(CudaDriverThread, WorkRingsTheBells) {
  const auto bell = std::make_shared<EndBell>();
  ASSERT_TRUE(bell->open());
  addBell(bell);
  std::thread::id where;
  const EndNumber number = endLater([&] { where = std::this_thread::get_id(); });
  testing::waitForEnds();
  EXPECT_TRUE(isEnded(number));
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_NE(where, std::thread::id());
  EXPECT_TRUE(bell->rung());
}

TEST(CudaDriverThread, AnEndThatEndsAnotherThingDoesSoAtOnce) {
  bool inner = false;
  endLater([&] {
    EXPECT_EQ(endLater([&] { inner = true; }), 0U);
    EXPECT_TRUE(inner);
  });
  testing::waitForEnds();
  EXPECT_TRUE(inner);
}

// An object whose end can be seen.
struct Seen {
  explicit Seen(bool& saw) : ended(saw) {}
  ~Seen() { ended = true; }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
  bool& ended;
};

TEST(CudaDriverThread, AnEndThatLastsHoldsUpNoOwner) {
  bool ended = false;
  auto object = endsSoon(new Seen(ended));
  const auto begun = Clock::now();
  {
    const LongWork hangs(kEnder);
    object.reset();
    EXPECT_GE(Clock::now(), begun + kPatience);
    EXPECT_FALSE(ended);
  }
  EXPECT_TRUE(ended);
}

TEST(CudaDriverThread, ManyEndsBehindOneThatLastsHoldUpNobody) {
  constexpr int kMany = 40;
  bool ended = false;
  const LongWork hangs(kEnder);
  const auto begun = Clock::now();
  for (int i = 0; i < kMany; ++i) endsLater(new Seen(ended)).reset();
  EXPECT_LT(Clock::now(), begun + kMany * kPatience / 2);
  EXPECT_FALSE(ended);
}

TEST(CudaDriverThread, ARegistrationThatLastsHoldsUpNoEnd) {
  bool ended = false;
  const LongWork lasts(kPatientRegistrar);
  endsLater(new Seen(ended)).reset();
  testing::waitForEnds();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(registrarHangs());
}

TEST(CudaDriverThread, ARegistrationThatLastsTooLongHangs) {
  const LongWork hangs(kRegistrar);
  awaitRegistrar();
  EXPECT_TRUE(registrarHangs());
}

// The mutexes may be locked in the child, and the threads are not there.
TEST(CudaDriverThread, AChildOfForkEndsThingsItself) {
  const LongWork hangs(kEnder), registers(kRegistrar);
  const pid_t child = ::fork();
  if (child == 0) {
    bool ended = false;
    endLater([&] { ended = true; });
    ::_exit(ended && !onRegistrar([] {}) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace viaduct::cuda
