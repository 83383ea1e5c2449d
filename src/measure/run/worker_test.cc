// Runs every member as a thread of this process, over the fake fabric.
#include "measure/run/worker.h"

#include <gtest/gtest.h>

#include "host/processors.h"
#include "measure/run/members_testing.h"
#include "measure/workload/collective.h"

namespace viaduct::measure {
namespace {

Spec specOf(Layout layout) {
  return {.layout = layout,
          .rows = {{.backend = "fake", .block_bytes = 1000, .batch = 9, .iterations = 7}},
          .warmup = std::chrono::milliseconds(1)};
}

TEST(Workers, EverySchemeAndModeMovesItsBytes) {
  for (const Scheme scheme :
       {Scheme::kPairwise, Scheme::kManyToOne, Scheme::kOneToMany, Scheme::kTp})
    for (const Mode mode : {Mode::kSg, Mode::kMg})
      for (const auto& [n, m] : {std::pair{1U, 1U}, {3U, 1U}, {1U, 3U}, {2U, 3U}}) {
        const Spec spec = specOf({.scheme = scheme, .mode = mode, .initiators = n, .targets = m});
        const std::vector<Row> rows = Members(spec).measure();
        ASSERT_EQ(rows.size(), 1U);
        const Row& row = rows[0];
        const auto pairs = pairsOf(scheme, n, m);
        EXPECT_TRUE(well(row)) << schemeName(scheme) << n << "x" << m << ": " << row.why;
        EXPECT_EQ(row.iterations, 7 * pairs.size());
        ASSERT_EQ(row.pairs.size(), pairs.size());
        for (std::size_t i = 0; i < pairs.size(); ++i) {
          EXPECT_EQ(row.pairs[i].initiator, spec.layout.initiatorRank(pairs[i].initiator));
          EXPECT_EQ(row.pairs[i].target, spec.layout.targetRank(pairs[i].target));
          EXPECT_GT(row.pairs[i].gb_per_s.value_or(0), 0);
          EXPECT_GT(row.pairs[i].latency_us.value_or(Latency{}).p50, 0);
          EXPECT_GE(row.pairs[i].latency_us.value_or(Latency{}).p95.value_or(0),
                    row.pairs[i].latency_us.value_or(Latency{}).p50);
        }
        std::uint64_t bytes = 0;
        for (const ProvenShare& share : row.path) bytes += share.bytes;
        EXPECT_EQ(bytes, 9000 * row.transfers);
      }
}

TEST(Workers, ARowAfterALostSessionWaitsForTheNextSession) {
  Spec spec = specOf({});
  spec.rows.push_back(spec.rows[0]);
  const std::vector<Row> rows = Members(spec, "kill-peer@op:5").measure();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].verdict, Verdict::kFailed) << "its session was lost";
  EXPECT_TRUE(well(rows[1])) << rows[1].why;
}

TEST(Workers, EveryPatternMovesItsBytesBetweenMembers) {
  for (const auto& [name, pattern] : kPatterns)
    for (const OpKind op : {OpKind::kWrite, OpKind::kRead})
      for (const std::uint32_t n : {2U, 3U, 4U}) {
        Spec spec = specOf(
            {.scheme = pattern, .initiators = n, .targets = n, .reads = op == OpKind::kRead});
        spec.rows[0].op = op;
        const std::vector<Row> rows = Members(spec).measure();
        ASSERT_EQ(rows.size(), 1U);
        const Row& row = rows[0];
        EXPECT_TRUE(well(row)) << name << " " << n << ": " << row.why;
        EXPECT_EQ(row.scheme, name);
        EXPECT_EQ(row.iterations, 7 * pairsOf(spec.layout).size());
        ASSERT_TRUE(row.as<Operation>());
        EXPECT_EQ(row.as<Operation>()->wrong, 0U);
        const OperationBytes bytes = operationBytes(spec.layout, spec.rows[0]);
        const double seconds = row.as<Operation>()->time_us.value_or(0) * 1e-6;
        EXPECT_NEAR(static_cast<double>(bytes.moved) / seconds, *row.gb_per_s * 1e9,
                    *row.gb_per_s * 1e3);
        EXPECT_DOUBLE_EQ(*row.as<Operation>()->busbw / *row.as<Operation>()->algbw,
                         static_cast<double>(bytes.busiest) / static_cast<double>(bytes.size));
      }
}

TEST(Workers, AMatrixMovesADifferentSizeForEachPair) {
  for (const OpKind op : {OpKind::kWrite, OpKind::kRead})
    for (const Verified verify : {Verified::kFull, Verified::kSampled}) {
      Spec spec = specOf({.scheme = Scheme::kMatrix,
                          .initiators = 3,
                          .targets = 3,
                          .reads = op == OpKind::kRead,
                          .matrix = {3, {0, 9000, 17, 4096, 0, 0, 0, 70'000, 0}}});
      spec.rows[0] = {.backend = "fake",
                      .op = op,
                      .block_bytes = 70'000,
                      .iterations = verify == Verified::kFull ? 3U : 40U};
      spec.verify = verify;
      const std::vector<Row> rows = Members(spec).measure();
      ASSERT_EQ(rows.size(), 1U);
      EXPECT_TRUE(well(rows[0])) << rows[0].why;
      EXPECT_EQ(rows[0].iterations, 4 * spec.rows[0].iterations);
      ASSERT_TRUE(rows[0].as<Operation>());
      EXPECT_EQ(rows[0].as<Operation>()->size, 9000U + 17 + 4096 + 70'000);
      EXPECT_EQ(rows[0].as<Operation>()->wrong, 0U);
      EXPECT_EQ(rows[0].scheme, "matrix");
    }
}

// An operation of a pattern ends with its slowest pair. So even a row with a duration has a fixed
// number of transfers, equal for all pairs.
TEST(Workers, AllPairsOfAPatternMoveEquallyOften) {
  Spec spec = specOf({.scheme = Scheme::kAlltoall, .initiators = 3, .targets = 3});
  spec.rows[0].iterations = 0;
  spec.duration = std::chrono::milliseconds(2);
  const std::vector<Row> rows = Members(spec).measure();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(well(rows[0])) << rows[0].why;
  EXPECT_EQ(rows[0].iterations % 6, 0U);
  EXPECT_GE(rows[0].iterations, 6 * 12U);
}

TEST(Workers, EveryOptionMovesCorrectBytes) {
  const auto one = [](auto change) {
    Spec spec = specOf({});
    change(spec);
    const std::vector<Row> rows = Members(spec).measure();
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_TRUE(well(rows[0])) << rows[0].why;
    EXPECT_GT(rows[0].gb_per_s.value_or(0), 0);
    EXPECT_EQ(rows[0].verified, spec.verify);
    ASSERT_TRUE(rows[0].checks);
    EXPECT_GE(rows[0].checks->transfers, 7U) << "a timed run and six short ones";
  };
  const auto many = [](Spec& s) { s.rows[0].iterations = 200; };
  one(many);
  one([&](Spec& s) { many(s), s.rows[0].op = OpKind::kRead; });
  one([&](Spec& s) { many(s), s.bidirectional = true, s.threads = 2, s.depth = 3; });
  one([&](Spec& s) { many(s), s.working_set = 100'000; });
  one([&](Spec& s) { many(s), s.rows[0].block_bytes = 5, s.rows[0].batch = 1; });
  one([&](Spec& s) { many(s), s.verify = Verified::kFull, s.depth = 2; });
  one([](Spec& s) { s.rows[0].op = OpKind::kRead; });
  one([](Spec& s) { s.bidirectional = true; });
  one([](Spec& s) { s.threads = 3, s.depth = 2, s.bidirectional = true; });
  one([](Spec& s) { s.working_set = 100'000, s.depth = 4; });
  one([](Spec& s) { s.recreate = true; });
  one([](Spec& s) { s.reregister = true, s.memory = MemoryChoice::kMalloc; });
  one([](Spec& s) { s.ping_pong = true; });
  one([](Spec& s) { s.rate = 5000, s.poisson = true; });
  one([](Spec& s) { s.repeat = 3; });
  one([](Spec& s) { s.fresh = true, s.depth = 2; });
  one([](Spec& s) { s.fresh = true, s.rows[0].op = OpKind::kRead; });
  one([](Spec& s) { s.rows[0].iterations = 0, s.duration = std::chrono::milliseconds(20); });
}

TEST(Workers, MembersOfOneProcessShareItsCpu) {
  Spec spec = specOf({.initiators = 2, .targets = 2});
  spec.rows[0].iterations = 0;
  spec.duration = std::chrono::milliseconds(400);
  Members members(spec);
  const double before = host::ownProcessorSeconds();
  const std::vector<Row> rows = members.measure();
  const double used = host::ownProcessorSeconds() - before;
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_TRUE(rows[0].cpu_s);
  EXPECT_LE(rows[0].cpu_s->initiators + rows[0].cpu_s->targets, used);
}

// Each transfer takes some milliseconds, and one should start every millisecond. The true latency
// grows with the queue; a latency from post to end would stay constant.
TEST(Workers, AnOpenLoopCountsFromTheIntendedStart) {
  Spec spec = specOf({});
  spec.rows[0].batch = 1;
  spec.rows[0].iterations = 40;
  spec.rate = 1000;
  const std::vector<Row> rows = Members(spec, "delay=10ms").measure();
  ASSERT_EQ(rows.size(), 1U);
  const Row& row = rows[0];
  ASSERT_TRUE(row.latency_us && row.tx_us && row.rate);
  EXPECT_GT(row.latency_us->max, 5 * row.tx_us->mean);
  EXPECT_EQ(row.rate->asked_per_s, 1000);
  EXPECT_LT(row.rate->reached_per_s, 500);
}

TEST(Workers, AfterARowThatFailsTheNextIsMeasured) {
  Spec spec = specOf({.initiators = 2, .targets = 2});
  spec.rows.insert(spec.rows.begin(), spec.rows[0]);
  spec.rows[0].backend = "pigeon";
  const std::vector<Row> rows = Members(spec).measure();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].verdict, Verdict::kFailed);
  EXPECT_NE(rows[0].why.find("pigeon"), std::string::npos) << rows[0].why;
  EXPECT_FALSE(rows[0].gb_per_s);
  EXPECT_TRUE(well(rows[1])) << rows[1].why;
}

TEST(Workers, AMissingRequiredPathIsReported) {
  Spec spec = specOf({});
  spec.require = "rdma";
  const std::vector<Row> rows = Members(spec).measure();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].verdict, Verdict::kNotRequired) << rows[0].why;
}

}  // namespace
}  // namespace viaduct::measure
