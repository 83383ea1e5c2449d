#include "measure/run/initiator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

// A target that meddles with what arrived before it is looked at.
class MeddlingTarget final : public Target {
 public:
  MeddlingTarget(Agent& agent, std::function<void(Region&)> meddle)
      : own_(agent), meddle_(std::move(meddle)) {}
  Status prepare(const Workload& workload, const std::string& label) override {
    return own_.prepare(workload, label);
  }
  Status fill(std::uint64_t epoch) override {
    auto filled = own_.fill(epoch);
    if (filled && reads_) meddle_(*own_.region());
    return filled;
  }
  Result<std::optional<Mismatch>> verify(std::uint64_t epoch) override {
    meddle_(*own_.region());
    return own_.verify(epoch);
  }
  Result<double> cpu() override { return own_.cpu(); }
  Status release() override { return own_.release(); }
  void meddleWithSource() { reads_ = true; }

 private:
  OwnTarget own_;
  std::function<void(Region&)> meddle_;
  bool reads_ = false;
};

class InitiatorTest : public ::testing::Test {
 protected:
  InitiatorTest()
      : here(*Agent::open({.listen = {}, .backends = {"fake"}})),
        there(*Agent::open({.listen = {}, .backends = {"fake"}})),
        peer(*here.connect(there.card())) {
    EXPECT_TRUE(peer.ready(5s));
  }
  static Workload workload(OpKind op, MemoryChoice memory = MemoryChoice::kAllocate) {
    return {.backend = "fake",
            .op = op,
            .block_bytes = 1000,
            .batch = 9,
            .iterations = 7,
            .memory = memory,
            .seed = 3};
  }
  Row measured(Target& target, const Workload& w) {
    auto row = measureRow(here, peer, target, w, stop);
    EXPECT_TRUE(row) << row.error().text();
    return row ? *row : Row{};
  }
  Agent here, there;
  Peer peer;
  StopFlag stop{false};
};

TEST_F(InitiatorTest, ARowIsWholeForBothWaysAndKindsOfMemory) {
  OwnTarget target(there);
  for (const OpKind op : {OpKind::kWrite, OpKind::kRead})
    for (const MemoryChoice memory : {MemoryChoice::kAllocate, MemoryChoice::kMalloc}) {
      const Row row = measured(target, workload(op, memory));
      EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
      EXPECT_EQ(row.verified, Verified::kFull);
      EXPECT_EQ(row.iterations, 7U);
      EXPECT_GT(row.gb_per_s, 0);
      EXPECT_GT(row.completions_per_s, 0);
      ASSERT_TRUE(row.latency_us);
      EXPECT_GT(row.latency_us->p50, 0);
      EXPECT_LE(row.latency_us->p50, row.latency_us->p99);
      EXPECT_LE(row.latency_us->p99_9, row.latency_us->max);
      ASSERT_EQ(row.path.size(), 1U);
      EXPECT_EQ(row.path[0].backend, "fake");
      EXPECT_EQ(row.path[0].bytes, 9000U);
    }
}

TEST_F(InitiatorTest, CorruptionOnTheWayIsSeen) {
  const std::pair<const char*, std::function<void(Region&)>> cases[] = {
      {"swapped",
       [](Region& r) {
         std::swap_ranges(r.block(2).begin(), r.block(2).end(), r.block(7).begin());
       }},
      {"block 4 is wrong from offset 999", [](Region& r) { r.block(4)[999] ^= std::byte{1}; }},
      {"stale", [](Region& r) { r.fill(1); }},
      {"zeros", [](Region& r) { std::ranges::fill(r.block(8), std::byte{0}); }},
  };
  for (const auto& [word, meddle] : cases) {
    MeddlingTarget target(there, meddle);
    const Row row = measured(target, workload(OpKind::kWrite));
    EXPECT_EQ(row.verdict, Verdict::kCorrupt) << word;
    EXPECT_EQ(row.verified, Verified::kFull);
    EXPECT_NE(row.why.find(word), std::string::npos) << row.why;
  }
}

TEST_F(InitiatorTest, CorruptionOfWhatIsReadIsSeen) {
  MeddlingTarget target(there, [](Region& r) { r.block(5)[0] ^= std::byte{0x10}; });
  target.meddleWithSource();
  const Row row = measured(target, workload(OpKind::kRead));
  EXPECT_EQ(row.verdict, Verdict::kCorrupt);
  EXPECT_NE(row.why.find("block 5 is wrong from offset 0"), std::string::npos) << row.why;
}

TEST_F(InitiatorTest, WhatCannotGoThatWayIsAFailedRow) {
  OwnTarget target(there);
  Workload w = workload(OpKind::kWrite);
  w.backend = "tcp";
  const Row row = measured(target, w);
  EXPECT_EQ(row.verdict, Verdict::kFailed);
  EXPECT_EQ(row.verified, Verified::kOff);
  EXPECT_FALSE(row.why.empty());
  EXPECT_EQ(measured(target, workload(OpKind::kWrite)).verdict, Verdict::kOk);
}

TEST_F(InitiatorTest, AStopEndsTheRow) {
  OwnTarget target(there);
  stop = true;
  EXPECT_FALSE(measureRow(here, peer, target, workload(OpKind::kWrite), stop));
}

}  // namespace
}  // namespace viaduct::measure
