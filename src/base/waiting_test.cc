#include "base/waiting.h"

#include <gtest/gtest.h>

#include <vector>

namespace viaduct::base {
namespace {

using namespace std::chrono_literals;

const Error kMissing{.operation = "join group g", .detail = "1 of 2 have joined"};

TEST(Waiting, IsDueAfterTwoSecondsThenEveryTen) {
  std::vector<std::string> lines;
  const auto before = Clock::now();
  Waiting wait([&](const std::string& line) { lines.push_back(line); }, before + 1h);
  EXPECT_FALSE(wait.isDue());
  EXPECT_GE(wait.due(), before + 2s);
  EXPECT_LE(wait.due(), Clock::now() + 2s);
  wait.tell(kMissing);
  EXPECT_GE(wait.due(), before + 10s);
  EXPECT_LE(wait.due(), Clock::now() + 10s);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("still waiting: join group g: 1 of 2 have joined; 3"))
      << lines[0];
  EXPECT_TRUE(lines[0].ends_with(" s left")) << lines[0];
}

TEST(Waiting, WithoutADeadlineNoTimeIsLeft) {
  std::string said;
  Waiting([&](const std::string& line) { said = line; }, Clock::time_point::max()).tell(kMissing);
  EXPECT_EQ(said, "still waiting: join group g: 1 of 2 have joined");
}

TEST(Waiting, ASilentWaitIsNeverDue) {
  const Waiting wait({}, Clock::now() + 1h);
  EXPECT_EQ(wait.due(), Clock::time_point::max());
  EXPECT_FALSE(wait.isDue());
}

}  // namespace
}  // namespace viaduct::base
