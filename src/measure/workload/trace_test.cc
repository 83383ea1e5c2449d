#include "measure/workload/trace.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

constexpr auto kTwo =
    "{\"timestamp\": 0, \"input_length\": 513, \"output_length\": 5, \"hash_ids\": [1, 2]}\n"
    "\n"
    "{\"timestamp\": 27.0, \"input_length\": 512, \"output_length\": 1, \"hash_ids\": [1]}\n";

TEST(Trace, ReadsRequestsAndWritesThemAgain) {
  const auto trace = parseTrace(kTwo, "t");
  ASSERT_TRUE(trace) << trace.error().text();
  ASSERT_EQ(trace->size(), 2U);
  EXPECT_EQ((*trace)[0].hash_ids, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ((*trace)[1].timestamp, 27U);
  const auto again = parseTrace(textOf(*trace), "t");
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *trace);
}

TEST(Trace, CountsHitsOfAnUnboundedCache) {
  const auto all = statisticsOf(*parseTrace(kTwo, "t"));
  EXPECT_EQ(all.hash_ids, 3U);
  EXPECT_EQ(all.unique, 2U);
  EXPECT_DOUBLE_EQ(all.prefix_hits, 1.0 / 3);
  EXPECT_DOUBLE_EQ(all.input_mean, 512.5);
}

TEST(Trace, NamesTheWrongLine) {
  struct WrongLine {
    const char *line, *says;
  };
  const WrongLine cases[] = {
      {"{", "line 4: "},
      {"[1]", "line 4: no JSON object"},
      {R"({"input_length": 1, "output_length": 1, "hash_ids": [1]})", "timestamp is missing"},
      {R"({"timestamp": -1, "input_length": 1, "output_length": 1, "hash_ids": [1]})",
       "timestamp is out of range"},
      {R"({"timestamp": "1", "input_length": 1, "output_length": 1, "hash_ids": [1]})",
       "timestamp is no number"},
      {R"({"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [1]})",
       "timestamp 1 is before 27"},
      {R"({"timestamp": 30, "input_length": 0, "output_length": 1, "hash_ids": []})",
       "input_length is 0"},
      {R"({"timestamp": 30, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]})",
       "2 hash ids for 512 tokens"},
      {R"({"timestamp": 30, "input_length": 513, "output_length": 1, "hash_ids": [7, 7]})",
       "hash_ids has 7 twice"},
      {R"({"timestamp": 30, "input_length": 1, "output_length": 1, "hash_ids": 1})",
       "hash_ids is no list"},
  };
  for (const WrongLine& one : cases) {
    const auto trace = parseTrace(std::string(kTwo) + one.line, "t.jsonl");
    ASSERT_FALSE(trace) << one.line;
    const std::string text = trace.error().text();
    EXPECT_NE(text.find(one.says), std::string::npos) << text;
    EXPECT_NE(text.find("line 4"), std::string::npos) << text;
  }
  EXPECT_FALSE(parseTrace("\n\n", "t"));
}

}  // namespace
}  // namespace viaduct::measure
