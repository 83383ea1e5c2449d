#include "measure/workload/trace.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

Trace twoRequests() {
  return {.requests = {{.time_us = 5, .input_length = 513, .output_length = 5, .hash_ids = {1, 2}},
                       {.time_us = 1'000'005, .input_length = 512, .hash_ids = {1}}}};
}

TEST(Trace, CountsHitsOfAnUnboundedCache) {
  const auto all = statisticsOf(twoRequests());
  EXPECT_EQ(all.hash_ids, 3U);
  EXPECT_EQ(all.unique, 2U);
  EXPECT_DOUBLE_EQ(all.prefix_hits, 1.0 / 3);
  EXPECT_DOUBLE_EQ(all.input_mean, 512.5);
  EXPECT_DOUBLE_EQ(all.requests_per_s, 2);
}

TEST(Trace, HasStatisticsWithoutIdsAndWithoutRequests) {
  Trace trace = twoRequests();
  for (TraceRequest& one : trace.requests) one.hash_ids.clear();
  EXPECT_EQ(statisticsOf(trace).prefix_hits, 0);
  EXPECT_EQ(statisticsOf({}).requests, 0U);
  EXPECT_EQ(secondsOf({}), 0);
}

TEST(Trace, EachChangeChangesItsDigest) {
  const std::uint64_t whole = traceDigest(twoRequests());
  EXPECT_EQ(traceDigest(twoRequests()), whole);
  Trace changed[] = {twoRequests(), twoRequests(), twoRequests(), twoRequests(), twoRequests()};
  changed[0].id_tokens = 16;
  ++changed[1].requests[0].time_us;
  ++changed[2].requests[1].input_length;
  changed[3].requests[0].hash_ids = {2, 1};
  changed[4].requests[1].hash_ids.clear();
  for (const Trace& one : changed) EXPECT_NE(traceDigest(one), whole);
}

}  // namespace
}  // namespace viaduct::measure
