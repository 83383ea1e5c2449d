// Bytes take another path than their backend reports; the benchmark has to detect it.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "lies/lies_testing.h"
#include "support/free_port.h"
#include "support/own_network.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

// An RDMA provider of libfabric that passes all calls to its TCP provider.
class TcpAsRdma : public ::testing::Test {
 protected:
  // The program's output and exit code.
  static std::pair<std::string, int> bench(const std::vector<std::string>& more) {
    std::vector<std::string> words{"bench", "--backend", "ofi", "--block-sizes",
                                   "64K",   "--batch",   "16",  "--iterations",
                                   "100"};
    words = withFlags(std::move(words), more);
    Program program(words, {std::string("FI_PROVIDER_PATH=") + kLieProviders});
    const int code = program.finish();
    return {flat(program.out() + program.err()), code};
  }
  void SetUp() override {
    if (std::string(kLieProviders).empty())
      GTEST_SKIP() << "skipped: no libfabric that takes a provider from outside";
  }
};

TEST_F(TcpAsRdma, IsNamed) {
  std::pair<std::string, int> run;
  const bool quiet = onAQuietNetwork([&] { run = bench({}); });
  const auto& [out, code] = run;
  if (count(out, "open ofi: not found") != 0) GTEST_SKIP() << "skipped: no provider efa here";
  EXPECT_EQ(code, 1) << out;
  EXPECT_GE(count(out, "ofi/efa"), 1U) << out;
  EXPECT_EQ(count(out, "FALLBACK"), 1U) << out;
  EXPECT_EQ(count(out, "proven"), 0U) << out;
  // Beside other programs' traffic, the run may look like a copy in memory.
  EXPECT_TRUE(!quiet || count(out, "went over loopback") == 1) << out;
}

TEST_F(TcpAsRdma, DoesNotSatisfyRequireRdma) {
  std::pair<std::string, int> run;
  onAQuietNetwork([&] { run = bench({"--require", "rdma"}); });
  const auto& [out, code] = run;
  if (count(out, "open ofi: not found") != 0) GTEST_SKIP() << "skipped: no provider efa here";
  EXPECT_EQ(code, 1) << out;
  EXPECT_EQ(count(out, "NOT-REQUIRED: rdma was required"), 1U) << out;
}

// Two members of this host whose second one claims to be on another host. The bytes stay in this
// host's memory, while the row claims a network between two hosts.
class OneHostAsTwo : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kPreloads) GTEST_SKIP() << "skipped: no preloading under a sanitizer";
    std::ofstream(file_) << "11111111-2222-3333-4444-555555555555\n";
  }
  void TearDown() override { std::filesystem::remove(file_); }

  // `lies`: the preloaded library's settings at both members.
  void run(const std::vector<std::string>& lies) {
    quiet_ = onAQuietNetwork([&] {
      const std::vector<std::string> words{"bench", "--meet",       freeAddress(), "--backend",
                                           "tcp",   "--iterations", "100",         "--block-sizes",
                                           "64K",   "--batch",      "16",          "--rank"};
      auto first = words, second = words;
      first.emplace_back("0");
      second.emplace_back("1");
      std::vector<std::string> variables{"VIADUCT_SECRET=word",
                                         std::string("LD_PRELOAD=") + kLieOtherHost};
      variables.insert(variables.end(), lies.begin(), lies.end());
      Program here(first, variables);
      variables.emplace_back("LIE_BOOT_ID=" + file_);
      Program there(second, variables);
      code_ = here.finish();
      EXPECT_EQ(there.finish(), code_) << there.err();
      out_ = flat(here.out() + here.err());
    });
    EXPECT_EQ(count(out_, "and perhaps 1 other host"), 1U) << out_;
    EXPECT_EQ(count(out_, ", proven"), 0U) << out_;
  }

  const std::string file_ = ::testing::TempDir() + "boot_id_" + std::to_string(::getpid());
  bool quiet_ = false;
  std::string out_;
  int code_ = 0;
};

TEST_F(OneHostAsTwo, IsNamed) {
  run({});
  EXPECT_EQ(code_, 1) << out_;
  EXPECT_TRUE(!quiet_ || count(out_, "FALLBACK") == 1) << out_;
  EXPECT_TRUE(!quiet_ || count(out_, "went over loopback") == 1) << out_;
}

TEST_F(OneHostAsTwo, WithForgedCountersIsUnproven) {
  run({"LIE_NETWORK=lo,eth9"});
  EXPECT_EQ(code_, 0) << out_;
  EXPECT_EQ(count(out_, "^ unproven:"), 1U) << out_;
  EXPECT_EQ(count(out_, "perhaps one host"), 1U) << out_;
  EXPECT_GE(count(out_, "eth9 of"), 1U) << out_;
  EXPECT_GE(count(out_, "that netlink does not confirm"), 1U) << out_;
}

}  // namespace
}  // namespace viaduct::testing
