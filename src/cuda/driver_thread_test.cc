#include "cuda/driver_thread.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "cuda/driver_thread_testing.h"

namespace viaduct::cuda {
namespace {

// Work that lasts until the object's end.
class LongWork {
 public:
  explicit LongWork(Duration expected = {}) {
    const auto work = [this] {
      begun_.set_value();
      over_.get_future().wait();
    };
    EXPECT_TRUE(onDriverThread(work, expected));
    begun_.get_future().wait();
  }
  ~LongWork() {
    over_.set_value();
    testing::waitForDriverThread();
  }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

 private:
  std::promise<void> begun_, over_;
};

TEST(CudaDriverThread, WorkRingsTheBells) {
  const auto bell = std::make_shared<EndBell>();
  ASSERT_TRUE(bell->open());
  addBell(bell);
  std::thread::id where;
  const WorkNumber number = endLater([&] { where = std::this_thread::get_id(); });
  testing::waitForDriverThread();
  EXPECT_TRUE(isDone(number));
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
  testing::waitForDriverThread();
  EXPECT_TRUE(inner);
}

TEST(CudaDriverThread, ACallThatLastsHoldsUpNoEnd) {
  auto object = endsOnDriverThread(new std::shared_ptr<int>(std::make_shared<int>(7)));
  const std::weak_ptr<int> inside = *object;
  const auto begun = Clock::now();
  {
    const LongWork hangs;
    object.reset();
    EXPECT_GE(Clock::now(), begun + kPatience);
    EXPECT_TRUE(driverThreadHangs());
    EXPECT_FALSE(inside.expired());
  }
  EXPECT_TRUE(inside.expired());
}

TEST(CudaDriverThread, WorkThatIsExpectedToLastHoldsUpNoEndEither) {
  auto object = endsOnDriverThread(new int(7));
  const LongWork lasts(std::chrono::hours(1));
  object.reset();
  EXPECT_FALSE(driverThreadHangs());
}

// The mutex may be locked in the child, and the thread is not there.
TEST(CudaDriverThread, AChildOfForkEndsThingsItself) {
  const LongWork hangs;
  const pid_t child = ::fork();
  if (child == 0) {
    bool ended = false;
    endLater([&] { ended = true; });
    ::_exit(ended && !onDriverThread([] {}) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace viaduct::cuda
