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
  LongWork() {
    EXPECT_TRUE(onDriverThread([this, begun = &begun_] {
      begun->set_value();
      over_.get_future().wait();
    }));
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

TEST(CudaDriverThread, AnEndIsOverOnReturnAndRingsTheBells) {
  const auto bell = std::make_shared<EndBell>();
  ASSERT_TRUE(bell->open());
  addBell(bell);
  std::thread::id where;
  endOnDriverThread([&] { where = std::this_thread::get_id(); });
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_NE(where, std::thread::id());
  EXPECT_TRUE(bell->rung());
}

TEST(CudaDriverThread, AnEndThatEndsAnotherThingDoesSoAtOnce) {
  bool ended = false, inner = false;
  endOnDriverThread([&] {
    endOnDriverThread([&] { inner = true; });
    EXPECT_TRUE(inner);
    ended = true;
  });
  EXPECT_TRUE(ended);
}

TEST(CudaDriverThread, ACallThatLastsHoldsUpNoEnd) {
  auto object = endsOnDriverThread(new std::shared_ptr<int>(std::make_shared<int>(7)));
  const std::weak_ptr<int> inside = *object;
  WorkNumber number = 0;
  {
    const LongWork hangs;
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_FALSE(driverThreadHangs());
    number = onDriverThread([] {}).value();
    object.reset();
    EXPECT_TRUE(driverThreadHangs());
    EXPECT_GE(std::chrono::steady_clock::now() - begun, kPatience / 2);
    EXPECT_FALSE(isDone(number));
    EXPECT_FALSE(inside.expired());
  }
  EXPECT_TRUE(isDone(number));
  EXPECT_TRUE(inside.expired());
}

// The mutex may be locked in the child, and the thread is not there.
TEST(CudaDriverThread, AChildOfForkEndsThingsItself) {
  const LongWork hangs;
  const pid_t child = ::fork();
  if (child == 0) {
    bool ended = false;
    endOnDriverThread([&] { ended = true; });
    ::_exit(ended && !onDriverThread([] {}) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace viaduct::cuda
