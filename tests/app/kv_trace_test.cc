// `viaduct kv generate` and `viaduct kv trace`, as users run them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/program.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

// Five requests, by hand: hits of 0, 2, 0, 1 and 2 of 2, 3, 2, 2 and 2 hash ids.
constexpr auto kTrace =
    R"({"timestamp": 0, "input_length": 1024, "output_length": 9, "hash_ids": [1, 2]}
{"timestamp": 10, "input_length": 1500, "output_length": 9, "hash_ids": [1, 2, 3]}
{"timestamp": 20, "input_length": 1024, "output_length": 9, "hash_ids": [7, 8]}
{"timestamp": 30, "input_length": 1000, "output_length": 9, "hash_ids": [1, 9]}
{"timestamp": 40, "input_length": 1024, "output_length": 9, "hash_ids": [7, 8]}
)";

class KvTrace : public ::testing::Test {
 protected:
  KvTrace() : base_(::testing::TempDir() + "viaduct_kv_trace_" + std::to_string(::getpid())) {
    write(kTrace);
  }
  ~KvTrace() override {
    for (const std::string& file : {trace(), json()}) std::filesystem::remove(file);
  }
  std::string trace() const { return base_ + ".jsonl"; }
  std::string json() const { return base_ + ".json"; }
  void write(const std::string& text) const { std::ofstream(trace()) << text; }

  Json replayed(const Words& more) {
    Words words{"kv", "trace", trace(), "gpt-oss-20b", "--json", json(), "--pool-budget", "512M"};
    words.insert(words.end(), more.begin(), more.end());
    Program run(words);
    EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
    out_ = run.out();
    std::ifstream in(json());
    return Json::parse(in).at("rows");
  }
  std::string base_, out_;
};

TEST_F(KvTrace, HasTheHitRateThatAHandComputes) {
  for (const char* op : {"push", "pull"}) {
    const Json rows = replayed({"--backend", "local,tcp", "--op", op, "--prefill-rate", "20000"});
    ASSERT_EQ(rows.size(), 2U);
    for (const Json& row : rows) {
      EXPECT_TRUE(row.at("verdict") == "ok" || row.at("verdict") == "unproven") << row.dump();
      EXPECT_EQ(row.at("scheme"), "kv-trace");
      EXPECT_EQ(row.at("iterations"), 5);
      const Json& replay = row.at("replay");
      EXPECT_EQ(replay.at("hash_ids"), 11);
      EXPECT_EQ(replay.at("hit_ids"), 5);
      EXPECT_DOUBLE_EQ(replay.at("hit_rate"), 5.0 / 11);
      EXPECT_EQ(replay.at("tokens"), 5572);
      EXPECT_EQ(replay.at("hit_tokens"), 1024 + 512 + 1024);
      EXPECT_GT(replay.at("of_ttft"), 0.0);
      EXPECT_LT(replay.at("of_ttft"), 1.0 + 1e-9);
      EXPECT_GT(row.at("latency_us").at("p99"), 0.0);
      EXPECT_GT(row.at("kv").at("checked_words"), 0);
      EXPECT_EQ(row.at("rate").at("arrivals"), "trace");
    }
    EXPECT_TRUE(has(out_, "5 of 11 hash ids: 45.5 %")) << out_;
    EXPECT_TRUE(has(out_, "% of TTFT in the mean")) << out_;
  }
}

TEST_F(KvTrace, TheSameTraceGivesTheSameRowApartFromTimes) {
  Program generate(
      {"kv", "generate", "--requests", "60", "--seed", "3", "--divide", "16", "--output", trace()});
  ASSERT_EQ(generate.finish(), 0) << generate.err();
  EXPECT_TRUE(has(generate.out(), "60 requests in")) << generate.out();
  const Words fast{"--backend", "tcp", "--speed", "100", "--pool-budget", "256M"};
  const Json first = replayed(fast)[0], again = replayed(fast)[0];
  EXPECT_EQ(first.at("replay"), again.at("replay"));
  EXPECT_EQ(first.at("kv"), again.at("kv"));
  EXPECT_EQ(first.at("block_size"), again.at("block_size"));
  EXPECT_EQ(first.at("path")[0].at("bytes"), again.at("path")[0].at("bytes"));
}

TEST_F(KvTrace, ASmallPoolLeavesOutLargeRequests) {
  const Json row = replayed({"--backend", "tcp", "--pool-budget", "52M"})[0];
  EXPECT_EQ(row.at("replay").at("left_out"), 1);
  EXPECT_EQ(row.at("replay").at("requests"), 4);
}

TEST_F(KvTrace, TellsWhatIsWrong) {
  write(std::string(kTrace) + "{\"timestamp\": 50}\n");
  struct Case {
    Words words;
    const char* says;
  };
  const Case cases[] = {
      {{trace(), "Llama-3.1-8B"}, "line 6: input_length is missing"},
      {{"/nowhere.jsonl", "Llama-3.1-8B"}, "/nowhere.jsonl"},
  };
  for (const Case& one : cases) {
    Words words{"kv", "trace"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    Program run(words);
    EXPECT_EQ(run.finish(), 2) << run.out();
    EXPECT_TRUE(has(run.err(), one.says)) << run.err();
  }
  write(kTrace);
  const Case flags[] = {
      {{trace(), "DeepSeek-V4-Pro"}, "has several block tables"},
      {{trace(), "Llama-3.1-8B", "--block", "100"}, "a hash id stands for 512 tokens"},
      {{trace(), "Llama-3.1-8B", "--tokens", "5"}, "--trace decides the requests"},
      {{trace(), "Llama-3.1-8B", "--pool-budget", "1M"}, "a block has 2.0 MiB"},
      {{trace(), "Llama-3.1-8B", "--speed", "0"}, "--speed"},
  };
  for (const Case& one : flags) {
    Words words{"kv", "trace"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    Program run(words);
    EXPECT_EQ(run.finish(), 2) << run.out();
    EXPECT_TRUE(has(run.err(), one.says)) << one.says << "\n" << run.err();
  }
}

}  // namespace
}  // namespace viaduct::testing
