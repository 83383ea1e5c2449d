// Composes rows from hand-made shares.
#include <gtest/gtest.h>

#include "measure/proof/scene_testing.h"
#include "measure/rates/share.h"

namespace viaduct::measure {
namespace {

using proof::Seen;

// Returns the share of a member whose process kept 1.9 of the host's 2 processors busy for one
// second.
RowShare busyMember(const Seen& seen) {
  return {.cpu = {.used = 1.9, .over = 1, .machine = 1.9, .processors = 2},
          .observation = proof::encode(seen)};
}

// Returns a row of one second, in which rank 0 initiates to rank 1. Equal arguments mean one
// process.
Row rowOfProcesses(std::uint8_t initiator, std::uint8_t target) {
  const Spec spec{.rows = {{.block_bytes = 1000, .iterations = 10}}};
  constexpr std::uint64_t kBytes = 10'000;
  RowShare leading =
      busyMember(Seen("a").process(initiator).claims(1, {{"local", "memcpy", "any", kBytes, 10}}));
  leading.streams = {{.iterations = 10}};
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

}  // namespace
}  // namespace viaduct::measure
