// `viaduct bench` over a fabric that corrupts data, or pretends to be another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/program.h"
#include "support/own_network.h"

namespace viaduct::testing {
namespace {

struct Outcome {
  int code = 0;
  std::string out = {};
  // Compares without line breaks, because the output breaks lines at the terminal's width.
  bool says(const std::string& part) const {
    std::string flat;
    std::copy_if(out.begin(), out.end(), std::back_inserter(flat),
                 [](char c) { return c != '\n' && c != ' '; });
    std::string wanted;
    std::copy_if(part.begin(), part.end(), std::back_inserter(wanted),
                 [](char c) { return c != ' '; });
    return flat.find(wanted) != std::string::npos;
  }
};

Outcome benchWithFaults(std::vector<std::string> environment) {
  environment.emplace_back("VIADUCT_FAULTS=seed=7,delay=1ms@0.05");
  Program program({"bench", "--backend", "local", "--block-sizes", "64K", "--batch", "16",
                   "--iterations", "20"},
                  environment);
  Outcome outcome;
  outcome.code = program.finish();
  outcome.out = program.out() + program.err();
  return outcome;
}

Outcome bench(const std::string& pretended, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"bench", "--backend",    "fake", "--block-sizes", "64K", "--batch",
                                 "16",    "--iterations", "20"};
  words = withFlags(std::move(words), more);
  Program program(words, {"VIADUCT_FAKE=far=1," + pretended});
  Outcome outcome;
  outcome.code = program.finish();
  outcome.out = program.out() + program.err();
  return outcome;
}

TEST(BenchHarm, AnUndisturbedFabricPasses) {
  const Outcome fair = bench("lie=none");
  EXPECT_EQ(fair.code, 0) << fair.out;
}

TEST(BenchHarm, BlocksThatWereHarmedAreCorruptAndNamed) {
  for (const char* harm : {"lie=corrupt", "lie=swap", "lie=shift", "lie=stale"}) {
    const Outcome outcome = bench(harm);
    EXPECT_EQ(outcome.code, 1) << harm << "\n" << outcome.out;
    EXPECT_TRUE(outcome.says("CORRUPT")) << harm << "\n" << outcome.out;
    EXPECT_TRUE(outcome.says("block")) << harm << "\n" << outcome.out;
    EXPECT_TRUE(outcome.says("offset")) << harm << "\n" << outcome.out;
  }
}

TEST(BenchHarm, ARunWithInjectedFaultsSaysSoAndIsNeverProven) {
  const Outcome refused = benchWithFaults({});
  EXPECT_NE(refused.code, 0);
  EXPECT_TRUE(refused.says("VIADUCT_FAULTS_ALLOWED")) << refused.out;
  const Outcome run = benchWithFaults({"VIADUCT_FAULTS_ALLOWED=yes"});
  EXPECT_EQ(run.code, 0) << run.out;
  for (const char* part : {"FAULTS are injected", "+faults on ", ", unproven",
                           "^ unproven: VIADUCT_FAULTS injected faults",
                           "injects faults: VIADUCT_FAULTS=seed=7,delay=1ms@0.05"})
    EXPECT_TRUE(run.says(part)) << part << "\n" << run.out;
  EXPECT_FALSE(run.says(", proven")) << run.out;
}

TEST(BenchHarm, ALocalCopyThatPosesAsANetworkIsCaught) {
  Outcome posing;
  const bool quiet = onAQuietNetwork([&] { posing = bench("pose=1"); });
  EXPECT_EQ(posing.code, 1) << posing.out;
  EXPECT_TRUE(posing.says("FALLBACK")) << posing.out;
  // Other programs' traffic may look like the bytes that no device carried.
  EXPECT_TRUE(!quiet || posing.says("a memory copy")) << posing.out;
  const Outcome required = bench("pose=1", {"--require", "rdma"});
  EXPECT_EQ(required.code, 1) << required.out;
  EXPECT_TRUE(required.says("NOT-REQUIRED")) << required.out;
}

}  // namespace
}  // namespace viaduct::testing
