// A target stops in the middle of a row; the benchmark has to report it.
#include <signal.h>

#include "lies/lies_testing.h"

namespace viaduct::testing {
namespace {

constexpr auto kFirstInterval = "tcp write 4 x 64 KiB: 0.00 to ";

std::vector<std::string> benchFor(const std::string& duration) {
  return {"bench", "--backend", "tcp", "--block-sizes", "64K",   "--batch",
          "4",     "-i",        "0.1", "--duration",    duration};
}

TEST(StalledTarget, ThatGoesOnIsARemarkOfTheRow) {
  Program run(benchFor("4s"), {"VIADUCT_DETECT=60s"});
  ASSERT_TRUE(run.readUntil(kFirstInterval)) << run.out();
  const pid_t target = run.worker("bench-rank-1");
  ASSERT_GT(target, 0);
  ::kill(target, SIGSTOP);
  for (int still = 0; still < 8;) {
    const auto line = run.readLine();
    ASSERT_TRUE(line) << run.out();
    if (line->ends_with(": 0 GB/s")) ++still;
  }
  ::kill(target, SIGCONT);
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_EQ(count(flat(run.out()), "^ stalled: one transfer took "), 1U) << run.out();
}

TEST(StalledTarget, ThatStaysStoppedIsNoRow) {
  Program run(benchFor("1000s"));
  ASSERT_TRUE(run.readUntil(kFirstInterval)) << run.out();
  const pid_t target = run.worker("bench-rank-1");
  ASSERT_GT(target, 0);
  ::kill(target, SIGSTOP);
  EXPECT_EQ(run.finish(), 3) << run.err();
  EXPECT_EQ(count(run.err(), "rank 1"), 1U) << run.err();
  EXPECT_EQ(count(run.out(), "64 KiB     4 "), 0U) << run.out();
  EXPECT_TRUE(waitGone(target));
}

}  // namespace
}  // namespace viaduct::testing
