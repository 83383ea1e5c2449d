// `viaduct kv generate` and `viaduct kv trace`, as users run them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/program.h"
#include "base/fd.h"
#include "base/read_fd.h"
#include "support/free_port.h"
#include "support/paths.h"
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
    words = withFlags(std::move(words), more);
    Program run(words);
    EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
    out_ = run.out();
    err_ = run.err();
    std::ifstream in(json());
    return Json::parse(in).at("rows");
  }
  std::string base_, out_, err_;
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

// A program whose stderr is a terminal, on which it shows the rate of the row that runs.
class Shown {
 public:
  Shown() : near_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (near_ && ::grantpt(near_.get()) == 0 && ::unlockpt(near_.get()) == 0)
      far_.reset(::open(::ptsname(near_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  int terminal() const { return far_.get(); }
  bool waitFor(const std::string& text) {
    std::array<char, 512> part{};
    while (!has(shown_, text)) {
      const ssize_t got = ::read(near_.get(), part.data(), part.size());
      if (got <= 0 || shown_.size() > 100'000U) return false;
      shown_.append(part.data(), static_cast<std::size_t>(got));
    }
    return true;
  }

 private:
  base::Fd near_, far_;
  std::string shown_;
};

// A format without hash ids has no hits.
TEST_F(KvTrace, ReplaysOtherFormatsThanThatOfMooncake) {
  struct Case {
    const char *format, *owner;
    bool ids;
  };
  for (const Case& one :
       {Case{"bailian", "Alibaba Bailian", true}, Case{"azure", "Azure", false}}) {
    Program generate({"kv", "generate", "--requests", "20", "--divide", "16", "--format",
                      one.format, "--output", trace()});
    ASSERT_EQ(generate.finish(), 0) << generate.err();
    EXPECT_EQ(has(generate.out(), "no hash ids in this format"), !one.ids) << generate.out();
    const Json row = replayed({"--backend", "tcp", "--speed", "100", "--block", "64", "--tp", "8",
                               "--pool-budget", "64M"})[0];
    const Json& replay = row.at("replay");
    EXPECT_EQ(replay.at("format"), one.format);
    EXPECT_EQ(replay.at("requests"), 20);
    EXPECT_EQ(replay.at("hit_ids") > 0, one.ids) << replay.dump();
    EXPECT_TRUE(has(err_, std::string(" is a trace in ") + one.owner + "'s format: 20 requests"))
        << err_;
    EXPECT_EQ(has(err_, "no prefix ids in this format: no hits"), !one.ids) << err_;
    EXPECT_EQ(has(out_, "none: the trace has no prefix ids"), !one.ids) << out_;
  }
}

TEST_F(KvTrace, ReplaysTheFirstRequestsInTheOrderOfTheirTimes) {
  write("Timestamp,Request tokens,Response tokens\n7,100,1\n2,50,1\n5,70,0\n9,30,1\nbroken");
  const Json row = replayed({"--backend", "tcp", "--requests", "3", "--speed", "1000"})[0];
  EXPECT_EQ(row.at("replay").at("requests"), 3);
  EXPECT_EQ(row.at("replay").at("tokens"), 180);
  EXPECT_TRUE(has(err_, "1 request is earlier than the line above")) << err_;
  EXPECT_TRUE(has(err_, "1 request failed: left out")) << err_;
}

// The file is a pipe that has no end, so the program reads until it is killed.
TEST_F(KvTrace, ATerminalShowsHowFarTheFileIsRead) {
  std::filesystem::remove(trace());
  ASSERT_EQ(::mkfifo(trace().c_str(), 0600), 0);
  Shown shown;
  if (shown.terminal() < 0) GTEST_SKIP() << "skipped: no pseudo terminals";
  Program run({"kv", "trace", trace(), "gpt-oss-20b"}, {}, kProgram, shown.terminal());
  std::atomic<bool> seen{false};
  std::thread writer([&] {
    const base::Fd pipe(::open(trace().c_str(), O_WRONLY | O_CLOEXEC));
    std::string lines;
    for (int i = 0; i < 1000; ++i) lines += "{\"timestamp\": 0, \"input_length\": 1}\n";
    while (!seen) base::writeAll(pipe.get(), lines);
  });
  EXPECT_TRUE(shown.waitFor("reading requests: "));
  seen = true;
  writer.join();
}

// The last request is due in an hour, so only the first five can have ended.
TEST_F(KvTrace, CtrlCAtAnyMemberKeepsTheRequestsThatHaveEnded) {
  write(std::string(kTrace) +
        R"({"timestamp": 3600000, "input_length": 1024, "output_length": 9, "hash_ids": [1, 2]})"
        "\n");
  for (const bool at_other : {false, true}) {
    Shown shown;
    if (shown.terminal() < 0) GTEST_SKIP() << "skipped: no pseudo terminals";
    const Words words{"kv",     "trace",      trace(), "gpt-oss-20b",    "--pool-budget",
                      "512M",   "--backend",  "local", "--prefill-rate", "20000",
                      "--meet", freeAddress()};
    Words first = words, second = words;
    first.insert(first.end(), {"--rank", "0", "--json", json()});
    second.insert(second.end(), {"--rank", "1"});
    Program lead(first, {}, kProgram, shown.terminal()), other(second);
    ASSERT_TRUE(shown.waitFor(" GB/s so far\r")) << lead.out();
    (at_other ? other : lead).interrupt(SIGINT);
    EXPECT_EQ(other.finish(), 130) << other.err();
    EXPECT_EQ(lead.finish(), 130) << lead.out();
    EXPECT_TRUE(has(lead.out(), " of 6 requests")) << lead.out();
    std::ifstream in(json());
    const Json report = Json::parse(in);
    EXPECT_EQ(report.at("end"), at_other ? "interrupted at rank 1" : "interrupted");
    ASSERT_EQ(report.at("rows").size(), 1U);
    const Json& row = report.at("rows")[0];
    EXPECT_TRUE(row.at("verdict") == "ok" || row.at("verdict") == "unproven") << row.dump();
    EXPECT_EQ(row.at("interrupted").at("of_transfers"), 6);
    EXPECT_GE(row.at("iterations"), 1);
    EXPECT_LE(row.at("iterations"), 5);
    EXPECT_EQ(row.at("replay").at("requests"), row.at("iterations"));
    EXPECT_GE(row.at("checks").at("transfers"), 1);
    EXPECT_TRUE(row.at("replay").contains("ttft_us"));
  }
}

struct Case {
  Words words;
  const char* says;
};
void expectRefused(std::span<const Case> cases) {
  for (const Case& one : cases) {
    Words words{"kv", "trace"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    Program run(words);
    EXPECT_EQ(run.finish(), 2) << run.out();
    EXPECT_TRUE(has(run.err(), one.says)) << one.says << "\n" << run.err();
    EXPECT_TRUE(has(run.err(), "what to do: ")) << run.err();
  }
}

TEST_F(KvTrace, TellsWhatIsWrong) {
  write(std::string(kTrace) + "{\"timestamp\": 50}\n");
  const Case cases[] = {
      {{trace(), "Llama-3.1-8B"}, "line 6: input_length is missing"},
      {{"/nowhere.jsonl", "Llama-3.1-8B"}, "/nowhere.jsonl"},
  };
  expectRefused(cases);
  write(kTrace);
  const Case flags[] = {
      {{trace(), "DeepSeek-V4-Pro"}, "has several block tables"},
      {{trace(), "Llama-3.1-8B", "--block", "100"}, "a hash id stands for 512 tokens"},
      {{trace(), "Llama-3.1-8B", "--tokens", "5"}, "it is a flag of `viaduct kv bench`"},
      {{trace(), "Llama-3.1-8B", "--pool-budget", "1M"}, "a block has 2 MiB"},
      {{trace(), "Llama-3.1-8B", "--speed", "0"}, "--speed"},
  };
  expectRefused(flags);
  write(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2001-01-01 00:00:00,1,1\n2003-01-01 00:00:00,1,1");
  const Case table[] = {
      {{trace(), "Llama-3.1-8B"}, "the replay would last 730 days"},
      {{trace(), "Llama-3.1-8B", "--speed", "0.0001"}, "and a year is the most"},
  };
  expectRefused(table);
  std::string large = "Timestamp,Request tokens,Response tokens\n";
  for (int i = 0; i < 200; ++i) large += "1,16777216,1\n";
  write(large);
  const Case size[] = {{{trace(), "Llama-3.1-8B"}, "200 requests need 209715400 blocks"},
                       {{trace(), "Llama-3.1-8B", "--requests", "1"}, "each request is too large"}};
  expectRefused(size);
  write("TIMESTAMP;ContextTokens\n");
  const Case other[] = {{{trace(), "Llama-3.1-8B"}, "line 1: no trace format fits"}};
  expectRefused(other);
}

}  // namespace
}  // namespace viaduct::testing
