// A backend that skips transfers and reports them as done.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/program.h"

namespace viaduct::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kPreloads = false;
#else
constexpr bool kPreloads = true;
#endif

// Copies between two processes' plain memory, each transfer by one system call.
std::string bench(const std::string& part, const std::vector<std::string>& more) {
  std::vector<std::string> words{"bench",         "--backend", "local",   "--memory", "malloc",
                                 "--block-sizes", "4KiB",      "--batch", "4"};
  words.insert(words.end(), more.begin(), more.end());
  Program program(words, {"LD_PRELOAD=" VIADUCT_LIE_SKIP, "LIE_SKIP=" + part});
  program.finish();
  return program.out() + program.err();
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
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
