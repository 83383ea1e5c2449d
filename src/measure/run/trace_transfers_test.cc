// Replays traces over the fake fabric, and stops the replays early.
#include "measure/run/trace_transfers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "measure/run/members_testing.h"

namespace viaduct::measure {
namespace {

constexpr std::uint32_t kTokens = 16;           // of a request and of a block
constexpr std::uint64_t kHour = 3'600'000'000;  // microseconds

KvPoint pointOf(std::uint64_t blocks) {
  const KvEnd end{.tp = 8, .block = kTokens};
  KvPoint point{.model = "Llama-3.1-8B", .sets = 1, .source = end, .destination = end};
  point.source.pool = point.destination.pool = 1;
  const auto one = layoutOf(point, KvSide::kSource, 0);
  EXPECT_TRUE(one);
  for (KvEnd* each : {&point.source, &point.destination}) {
    each->pool = blocks;
    each->bytes = blocks * kvExtent(*one).bytes;
  }
  return point;
}

// Makes a trace: `soon` requests are due at once, and as many an hour later. All have one hash id.
Spec specOf(std::uint64_t soon, OpKind op) {
  Trace trace;
  for (std::uint64_t i = 0; i < 2 * soon; ++i)
    trace.requests.push_back(
        {.time_us = i < soon ? 0 : kHour, .input_length = kTokens, .hash_ids = {1}});
  const KvPoint point = pointOf(2 * soon);
  return {.rows = {{.backend = "fake",
                    .op = op,
                    .block_bytes = point.source.bytes / point.source.pool,
                    .kv = point,
                    .trace = KvTrace{.name = "trace",
                                     .requests = std::make_shared<const Trace>(trace),
                                     .prefill_rate = 1000}}},
          .rate = 1};
}

// Checks that the row has the requests that have ended, and no others.
void expectPartial(const Row& row, std::uint64_t planned) {
  EXPECT_TRUE(well(row)) << row.why;
  EXPECT_GE(row.iterations, 1U);
  EXPECT_LT(row.iterations, planned);
  ASSERT_TRUE(row.interrupted);
  EXPECT_EQ(row.interrupted->of_transfers, planned);
  EXPECT_EQ(row.remark.rfind("interrupted after " + std::to_string(row.iterations) + " of " +
                                 std::to_string(planned) + " requests",
                             0),
            0U)
      << row.remark;
  EXPECT_LT(row.seconds, 1000) << "the wait for the stop request is no part of the row";
  EXPECT_TRUE(row.latency_us);
  ASSERT_TRUE(row.checks);
  EXPECT_EQ(row.checks->transfers, row.iterations);
  EXPECT_GT(row.as<KvWorkload>()->checked_words, 0U);
  ASSERT_TRUE(row.as<KvWorkload>()->replay);
  EXPECT_EQ(row.as<KvWorkload>()->replay->requests, row.iterations);
  EXPECT_EQ(row.as<KvWorkload>()->replay->hash_ids, row.iterations);
  EXPECT_TRUE(row.as<KvWorkload>()->replay->ttft_us);
}

TEST(ReplayRun, AStopRequestKeepsTheRequestsThatHaveEnded) {
  for (const OpKind op : {OpKind::kWrite, OpKind::kRead})
    for (const std::uint32_t stops : {0U, 1U}) {
      Members* running = nullptr;
      Members members(specOf(5, op), {}, {.tick = [&](double gb_per_s) {
                        if (gb_per_s > 0) running->stop(stops);
                      }});
      running = &members;
      const std::vector<Row> rows = members.measure();
      ASSERT_EQ(rows.size(), 1U);
      expectPartial(rows[0], 10);
      EXPECT_EQ(rows[0].as<KvWorkload>()->replay->hit_ids, rows[0].iterations - 1);
      for (const std::uint32_t rank : {0U, 1U}) EXPECT_EQ(members.stopBy(rank), stops) << rank;
    }
}

TEST(ReplayRun, ShowsWhatItPrepares) {
  for (const OpKind op : {OpKind::kWrite, OpKind::kRead}) {
    std::mutex lock;  // members are threads
    std::set<std::string> steps;
    Members* running = nullptr;
    Members members(specOf(5, op), {},
                    {.tick = [&](double) { running->stop(0); },
                     .preparing =
                         [&](const char* what, std::uint64_t done, std::uint64_t of) {
                           const std::lock_guard<std::mutex> held(lock);
                           EXPECT_LE(done, of);
                           steps.insert(what);
                         }});
    running = &members;
    members.measure();
    EXPECT_EQ(steps, (std::set<std::string>{"filling the pool", "planning requests"}));
  }
}

// Some ops never begin. Their requests are left out of the row, and only the pages of the other
// requests are checked.
TEST(ReplayRun, AfterAStopRequestTransfersThatHangAreCancelled) {
  Members* running = nullptr;
  std::atomic<int> ticks{0};
  Members members(specOf(20, OpKind::kWrite), "seed=3,stop@0.01", {.tick = [&](double) {
                    if (++ticks == 40) running->stop(1);
                  }});
  running = &members;
  const std::vector<Row> rows = members.measure();
  ASSERT_EQ(rows.size(), 1U);
  expectPartial(rows[0], 40);
  EXPECT_LT(rows[0].iterations, 20U);
  EXPECT_NE(rows[0].remark.find(" in flight w"), std::string::npos) << rows[0].remark;
}

TEST(ReplayRun, WrongPagesAreNamed) {
  for (const char* lie : {"", "lie=stale", "lie=swap", "lie=corrupt"}) {
    Spec spec = specOf(3, OpKind::kWrite);
    spec.rows[0].trace->speed = 1e12;  // all requests are due at once
    spec.verify = Verified::kFull;
    const std::vector<Row> rows = Members(spec, {}, {}, lie).measure();
    ASSERT_EQ(rows.size(), 1U);
    const bool wrong = *lie != 0;
    EXPECT_EQ(rows[0].verdict == Verdict::kCorrupt, wrong) << lie << " " << rows[0].why;
    EXPECT_EQ(rows[0].why.find(" of layer ") != std::string::npos, wrong) << rows[0].why;
  }
}

}  // namespace
}  // namespace viaduct::measure
