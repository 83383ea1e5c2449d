// Composes rows from hand-made shares.
#include <gtest/gtest.h>

#include "measure/proof/scene_testing.h"
#include "measure/proof/share.h"

namespace viaduct::measure {
namespace {

using proof::Seen;

// Returns the share of a member whose process kept 1.9 of the host's 2 processors busy for one
// second.
RowShare busyMember(const Seen& seen) {
  return {.cpu = {.used = 1.9, .over = 1, .machine = 1.9, .processors = 2},
          .observation = proof::encode(seen)};
}

// Returns a row of one second, in which rank 0 transfers to rank 1. The arguments are process IDs;
// equal ones mean that both ranks are in one process.
Row rowOfProcesses(std::uint8_t initiator, std::uint8_t target) {
  const Spec spec{.rows = {{.block_bytes = 1000, .iterations = 10}}};
  constexpr std::uint64_t kBytes = 10'000;
  RowShare leading =
      busyMember(Seen("a").process(initiator).claims(1, {{"local", "memcpy", "any", kBytes, 10}}));
  leading.streams = {{.iterations = 10, .bytes = kBytes}};
  leading.transfers = 10;
  leading.bytes = kBytes;
  const RoundShare moved{.streams = {{.iterations = 10, .parts = {{kBytes, 1.0}}}}};
  const std::vector<RowShare> shares{leading, busyMember(Seen("a").process(target))};
  return compose(spec, spec.rows[0], shares, {.each = {{moved, {}}}})->row;
}

TEST(Compose, CountsTheCpuOfEachProcess) {
  const Row row = rowOfProcesses(1, 2);
  EXPECT_EQ(row.cpu_s, (CpuSeconds{1.9, 1.9}));
  EXPECT_EQ(row.cores_busy, 3.8);
  EXPECT_EQ(row.verdict, Verdict::kInvalid);
  EXPECT_EQ(row.why, "3.8 of 2 cores busy is impossible: a clock is wrong");
}

TEST(Compose, CountsTheCpuOfAProcessOfSeveralMembersOnce) {
  const Row row = rowOfProcesses(1, 1);
  EXPECT_EQ(row.cpu_s, (CpuSeconds{0.95, 0.95}));
  EXPECT_EQ(row.cores_busy, 1.9);
  EXPECT_NE(row.verdict, Verdict::kInvalid) << row.why;
}

// Rank 0 sealed for 4 ms and rank 1 opened for 6 ms, for 10 MB of the row's path.
TEST(Compose, SaysWhatProtectionCost) {
  const Spec spec{.rows = {{.block_bytes = 1'000'000, .iterations = 10}}};
  constexpr std::uint64_t kBytes = 10'000'000;
  const auto rowOf = [&](double cpu_s) {
    std::vector<RowShare> shares;
    for (const int ms : {4, 6}) {
      proof::Observation seen = Seen("a").process(static_cast<std::uint8_t>(ms));
      const std::chrono::milliseconds sealing(ms);
      seen.before.rails = {{"any", {.sockets = 1, .sealing = std::chrono::seconds(3)}}};
      seen.after.rails = {{"any", {.sockets = 1, .sealing = std::chrono::seconds(3) + sealing}}};
      if (ms == 4) seen.claims = {{.peer = 1, .path = {{{"tcp", "socket", "any", kBytes, 10}}}}};
      shares.push_back({.cpu = {.used = cpu_s / 2, .over = 1, .machine = 1, .processors = 2},
                        .observation = proof::encode(seen)});
    }
    shares[0].streams = {{.iterations = 10, .bytes = kBytes}};
    shares[0].transfers = 10;
    shares[0].bytes = kBytes;
    const RoundShare moved{.streams = {{.iterations = 10, .parts = {{kBytes, 1.0}}}}};
    return compose(spec, spec.rows[0], shares, {.each = {{moved, {}}}})->row;
  };
  const Row row = rowOf(0.02);
  EXPECT_DOUBLE_EQ(row.counts->members[1].sealing_s, 0.006);
  EXPECT_NE(row.remark.find("sealing and opening took 1 of 2 CPU s/GB"), std::string::npos)
      << row.remark;
  EXPECT_EQ(rowOf(0.3).remark.find("sealing"), std::string::npos) << "less than 5 %";
}

// A row that ends before its last round is interrupted, even if its rounds lasted longer than
// planned.
TEST(Compose, ARowIsInterruptedIfRoundsAreLeft) {
  const Spec spec{.rows = {{.block_bytes = 1000}}};
  const RoundShare moved{.streams = {{.iterations = 10, .parts = {{10'000, 1.0}}}}};
  RowShare leading{.observation = proof::encode(Seen("a"))};
  leading.streams = {{.iterations = 20, .bytes = 20'000}};
  const std::vector<RowShare> shares{leading, {.observation = proof::encode(Seen("a"))}};
  const auto rowOf = [&](std::uint64_t all) {
    const Rounds rounds{.each = {{moved, {}}, {moved, {}}},
                        .all = all,
                        .planned = {.of_seconds = 0.5},
                        .stopped = true};
    return compose(spec, spec.rows[0], shares, rounds)->row;
  };
  EXPECT_FALSE(rowOf(2).interrupted);
  const Row early = rowOf(5);
  ASSERT_TRUE(early.interrupted);
  EXPECT_TRUE(early.remark.starts_with("interrupted after 2 of 5 rounds")) << early.remark;
}

// A row of one second: the first of two GPUs of rank 0 moves 30 kB, the second 10 kB.
Row rowOfTwoGpus(const Rounds::Round& alone) {
  const Spec spec{.layout = {.mode = Mode::kMg, .initiators = 2, .targets = 2},
                  .rows = {{.block_bytes = 1000, .iterations = 10}},
                  .initiator_gpu = 0,
                  .target_gpu = 0};
  const RoundShare moved{.streams = {{.stream = 0, .iterations = 30, .parts = {{30'000, 1.0}}},
                                     {.stream = 1, .iterations = 10, .parts = {{10'000, 1.0}}}}};
  std::vector<RowShare> shares{{.observation = proof::encode(Seen("a").gpu(0, "x").gpu(1, "y"))},
                               {.observation = proof::encode(Seen("a"))}};
  shares[0].streams = {{.stream = 0, .iterations = 30}, {.stream = 1, .iterations = 10}};
  return compose(spec, spec.rows[0], shares, {.each = {{moved, {}}}, .alone = alone})->row;
}

TEST(Compose, HasTheRateOfEachGpu) {
  const RoundShare first{.streams = {{.stream = 0, .iterations = 25, .parts = {{25'000, 1.0}}}}};
  const Row row = rowOfTwoGpus({first, {}});
  ASSERT_EQ(row.devices.size(), 2U);
  EXPECT_EQ(row.devices[0].gpu, "GPU x");
  EXPECT_EQ(row.devices[1].gpu, "GPU y");
  EXPECT_DOUBLE_EQ(row.devices[0].gb_per_s, 30e-6);
  EXPECT_DOUBLE_EQ(row.devices[1].gb_per_s, 10e-6);
  ASSERT_TRUE(row.scaling);
  EXPECT_DOUBLE_EQ(row.scaling->slowest_of_fastest, 1.0 / 3);
  EXPECT_DOUBLE_EQ(row.scaling->alone_gb_per_s.value_or(0), 25e-6);
  EXPECT_DOUBLE_EQ(row.scaling->of_linear.value_or(0), 0.8) << "40 of 2 x 25";
}

TEST(Compose, ScalesWithoutTheRateOfOneAlone) {
  const Row row = rowOfTwoGpus({});
  ASSERT_TRUE(row.scaling);
  EXPECT_FALSE(row.scaling->alone_gb_per_s);
  EXPECT_FALSE(rowOfProcesses(1, 2).scaling);
}

}  // namespace
}  // namespace viaduct::measure
