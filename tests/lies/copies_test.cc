// A backend reports success for transfers that it skips or corrupts; the benchmark has to detect
// it.
#include "lies/lies_testing.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

std::string bench(const std::string& kind, const std::string& part,
                  const std::vector<std::string>& more) {
  return benchWith(kLieCopies, {"LIE=" + kind, "LIE_PART=" + part}, more);
}

class Copies : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kPreloads) GTEST_SKIP() << "skipped: no preloading under a sanitizer";
    const std::string out = bench("skip", "0", {"--iterations", "500"});
    if (count(out, "local/cma") == 0) GTEST_SKIP() << "skipped: no cross-memory attach here";
    EXPECT_EQ(count(out, "CORRUPT"), 0U) << out;
    EXPECT_EQ(count(out, " <"), 1U) << out;
  }
  static void expectCaught(const std::string& out) {
    EXPECT_EQ(count(out, "CORRUPT"), 1U) << out;
    EXPECT_EQ(count(out, "checked transfers have wrong bytes"), 1U) << out;
  }
};

TEST_F(Copies, EverySecondThatIsSkippedIsCaught) {
  for (const char* op : {"write", "read"})
    expectCaught(bench("skip", "0.5", {"--iterations", "2000", "--op", op}));
}

TEST_F(Copies, AlmostAllThatAreSkippedAreCaught) {
  expectCaught(bench("skip", "0.99", {"--iterations", "2000"}));
}

// If a fifth of the copies is skipped, 72 checks miss that once in 9,000,000 rows.
TEST_F(Copies, AFifthThatIsSkippedIsCaughtInEveryShape) {
  const std::vector<std::vector<std::string>> shapes{
      {"--iterations", "2000"},
      {"--iterations", "40", "--num-threads", "2"},
      {"--iterations", "2000", "--pipeline-depth", "4", "--cold"},
      {"--duration", "30ms", "--bidirectional"},
      {"--iterations", "200", "--verify", "full"}};
  for (const auto& shape : shapes) expectCaught(bench("skip", "0.2", shape));
}

TEST_F(Copies, ThatAreShortSwappedShiftedOrStaleAreCaught) {
  for (const char* kind : {"short", "swap", "shift", "stale"})
    expectCaught(bench(kind, "0.5", {"--iterations", "2000"}));
}

TEST_F(Copies, ASingleBitIsCaughtWhereEveryTransferIsChecked) {
  for (const char* op : {"write", "read"})
    expectCaught(bench("flip", "0.2", {"--iterations", "200", "--verify", "full", "--op", op}));
}

std::string benchWhen(const std::string& when, const std::vector<std::string>& more) {
  return benchWith(kLieCopies, {"LIE=skip", "LIE_PART=1", "LIE_WHEN=" + when}, more);
}

TEST_F(Copies, ThatOnlyTheTimedThreadSkipsAreCaught) {
  expectCaught(benchWhen("thread", {"--iterations", "2000"}));
}

TEST_F(Copies, ThatAreSkippedWhileAnotherOneRunsAreCaught) {
  expectCaught(benchWhen(
      "overlap", {"--iterations", "2000", "--num-threads", "2", "--block-sizes", "256KiB"}));
}

TEST_F(Copies, ThatAreSkippedInALongRowAreCaught) {
  expectCaught(benchWhen("row", {"--iterations", "2000"}));
  expectCaught(benchWhen("row", {"--iterations", "2000", "--cold"}));
}

TEST_F(Copies, ThatAreSkippedCloseToTheOneBeforeAreCaught) {
  expectCaught(benchWhen("close", {"--iterations", "2000"}));
}

// No write has the bytes of the write before it, so this lie skips no copy here. It would skip
// reads, because their source repeats its bytes.
TEST_F(Copies, OfTheSameBytesAreNotSkippedUnseen) {
  const std::string out = benchWhen("same", {"--iterations", "2000"});
  EXPECT_EQ(count(out, "CORRUPT"), 0U) << out;
}

TEST_F(Copies, WithoutTheirMiddleAreCaught) {
  expectCaught(bench("hollow", "1", {"--iterations", "200"}));
  expectCaught(bench("hollow", "0.1", {"--iterations", "2000", "--fresh"}));
}

TEST_F(Copies, OfAPipelineAreAllChecked) {
  for (const char* kind : {"skip", "short", "shift", "flip"}) {
    Program program(
        {"pipeline", "host,net,host", "--backend", "local", "--memory", "malloc",
         "--total-buffer-size", "1MiB", "--repeat", "1", "--output", "json"},
        {std::string("LD_PRELOAD=") + kLieCopies, std::string("LIE=") + kind, "LIE_PART=1"});
    EXPECT_EQ(program.finish(), 1) << kind << program.out();
    EXPECT_EQ(count(program.out(), "damaged bytes at the end of net"), 1U) << kind << program.out();
  }
}

}  // namespace
}  // namespace viaduct::testing
