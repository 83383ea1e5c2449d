// A backend that skips transfers and reports them as done.
#include "lies/lies_testing.h"

namespace viaduct::testing {
namespace {

std::string bench(const std::string& part, const std::vector<std::string>& more) {
  return benchWith(VIADUCT_LIE_SKIP, {"LIE_SKIP=" + part}, more);
}

class Skipped : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kPreloads) GTEST_SKIP() << "skipped: no preloading under a sanitizer";
    if (count(bench("0", {"--iterations", "500"}), "local/cma") == 0)
      GTEST_SKIP() << "skipped: no cross-memory attach here";
  }
};

TEST_F(Skipped, EverySecondTransferIsCaught) {
  for (const char* op : {"write", "read"}) {
    const std::string out = bench("0.5", {"--iterations", "2000", "--op", op});
    EXPECT_EQ(count(out, "CORRUPT"), 1U) << out;
    EXPECT_EQ(count(out, "checked transfers arrived wrong"), 1U) << out;
  }
}

TEST_F(Skipped, AlmostEveryTransferIsCaught) {
  EXPECT_EQ(count(bench("0.99", {"--iterations", "2000"}), "CORRUPT"), 1U);
}

// A fifth of them escapes 66 checks once in 2,500,000 rows.
TEST_F(Skipped, AFifthIsCaughtInEveryShape) {
  const std::vector<std::vector<std::string>> shapes{
      {"--iterations", "2000"},
      {"--iterations", "40", "--num-threads", "2"},
      {"--iterations", "2000", "--pipeline-depth", "4", "--cold"},
      {"--duration", "30ms", "--bidirectional"},
      {"--iterations", "200", "--verify", "full"}};
  for (const auto& shape : shapes) {
    const std::string out = bench("0.2", shape);
    EXPECT_EQ(count(out, "CORRUPT"), 1U) << out;
  }
}

TEST_F(Skipped, NoneIsNothingToComplainOf) {
  const std::string out = bench("0", {"--iterations", "2000"});
  EXPECT_EQ(count(out, "CORRUPT"), 0U) << out;
  EXPECT_EQ(count(out, "<10%"), 1U) << out;
}

}  // namespace
}  // namespace viaduct::testing
