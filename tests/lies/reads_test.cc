// Reads that never happen, and a target that throws payload away; the benchmark has to detect it.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lies/lies_testing.h"
#include "support/free_port.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

class Reads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kPreloads) GTEST_SKIP() << "skipped: no preloading under a sanitizer";
    std::ofstream(file_).close();
    std::filesystem::resize_file(file_, 1 << 20);  // sparse, and so all zeros
  }
  void TearDown() override { std::filesystem::remove(file_); }
  std::string bench(const std::string& lie) const {
    Program program(
        {"bench", "--backend", "file", "--filenames", file_, "--op", "read", "--block-sizes",
         "4KiB", "--batch", "4", "--iterations", "200"},
        {std::string("LD_PRELOAD=") + kLieReads, "LIE=" + lie, "VIADUCT_FILE_ENGINE=threads"});
    program.finish();
    return flat(program.out() + program.err());
  }
  const std::string file_ = ::testing::TempDir() + "sparse_" + std::to_string(::getpid());
};

TEST_F(Reads, OfASparseFileThatNeverHappenAreCaught) {
  const std::string honest = bench("none");
  EXPECT_EQ(count(honest, "CORRUPT"), 0U) << honest;
  const std::string out = bench("file");
  EXPECT_EQ(count(out, "CORRUPT"), 1U) << out;
}

// The file is read a second time before the verdict.
TEST_F(Reads, WithAWrongByteAreCaught) {
  const std::string out = bench("byte");
  EXPECT_EQ(count(out, "CORRUPT"), 1U) << out;
  EXPECT_EQ(count(out, "the storage has other bytes there"), 1U) << out;
}

TEST(Payload, ThatTheTargetThrowsAwayIsMissed) {
  if (!kPreloads) GTEST_SKIP() << "skipped: no preloading under a sanitizer";
  const std::vector<std::string> words{"bench", "--meet",       freeAddress(), "--backend",
                                       "tcp",   "--iterations", "100",         "--block-sizes",
                                       "64K",   "--batch",      "4",           "--rank"};
  auto first = words, second = words;
  first.emplace_back("0");
  second.emplace_back("1");
  Program here(first, {"VIADUCT_SECRET=word"});
  Program there(second,
                {"VIADUCT_SECRET=word", std::string("LD_PRELOAD=") + kLieReads, "LIE=payload"});
  EXPECT_EQ(here.finish(), 1);
  EXPECT_EQ(there.finish(), 1) << there.err();
  const std::string out = flat(here.out() + here.err());
  EXPECT_EQ(count(out, "CORRUPT"), 1U) << out;
}

}  // namespace
}  // namespace viaduct::testing
