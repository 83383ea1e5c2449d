#include "measure/workload/read_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "measure/workload/trace_format.h"

namespace viaduct::measure {
namespace {

using Ids = std::vector<std::uint64_t>;

const std::string kMooncake =
    "{\"timestamp\": 0, \"input_length\": 513, \"output_length\": 5, \"hash_ids\": [1, 2]}\n"
    "\n"
    "{\"timestamp\": 27.5, \"input_length\": 512, \"output_length\": 1, \"hash_ids\": [1]}\n";
const std::string kAzure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 00:00:01.5000000,100,10\n"
    "2023-11-16 00:00:02+00:00,200,20\n";
const std::string kBurstGpt =
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,1,0.5,ChatGPT,472,18,490,Conversation log\n"
    "45.25,2,,GPT-4,1087,230,1317,API log\n";

ReadTrace readOf(const std::string& text, const TraceReading& how = {}) {
  auto read = parseTrace(text, "t", how);
  EXPECT_TRUE(read) << read.error().text();
  return read ? *std::move(read) : ReadTrace{};
}
std::string errorOf(const std::string& text) {
  const auto read = parseTrace(text, "t.jsonl");
  return read ? "read" : read.error().text();
}
void expectError(const std::string& text, std::initializer_list<const char*> says) {
  const std::string error = errorOf(text);
  for (const char* const one : says) EXPECT_NE(error.find(one), std::string::npos) << error;
}

TEST(ReadTrace, ReadsMooncake) {
  const auto [trace, remarks] = readOf(kMooncake);
  EXPECT_TRUE(remarks.empty());
  EXPECT_EQ(trace.format, TraceFormat::kMooncake);
  ASSERT_EQ(trace.requests.size(), 2U);
  EXPECT_EQ(trace.requests[0].hash_ids, (Ids{1, 2}));
  EXPECT_EQ(trace.requests[1].time_us, 27'500U);
  EXPECT_EQ(readOf(textOf(trace)).trace, trace);
}

TEST(ReadTrace, MooncakeNeedsNoIdsAndNoOutput) {
  const auto [trace, remarks] = readOf(R"({"timestamp": 3, "input_length": 700})");
  EXPECT_TRUE(remarks.empty());
  EXPECT_EQ(trace.requests.front().input_length, 700U);
  EXPECT_TRUE(trace.requests.front().hash_ids.empty());
}

TEST(ReadTrace, MooncakeMayHaveMoreOrFewerIdsThanTokens) {
  const std::string lines =
      "{\"timestamp\": 0, \"input_length\": 655, \"hash_ids\": [0, 1, 2]}\n"
      "{\"timestamp\": 0, \"input_length\": 2000, \"hash_ids\": [0, 0]}\n";
  const auto [trace, remarks] = readOf(lines);
  EXPECT_EQ(trace.requests[0].hash_ids, (Ids{0, 1}));
  EXPECT_EQ(trace.requests[1].hash_ids, (Ids{0, 0}));
  ASSERT_EQ(remarks.size(), 2U);
  EXPECT_EQ(remarks[0].rfind("1 request has more hash ids than tokens: ", 0), 0U) << remarks[0];
  EXPECT_EQ(remarks[1].rfind("1 request has tokens without a hash id: ", 0), 0U) << remarks[1];
  const auto small = readOf(lines, {.id_tokens = 64}).trace;
  EXPECT_EQ(small.id_tokens, 64U);
  EXPECT_EQ(small.requests[0].hash_ids.size(), 3U);
}

TEST(ReadTrace, ADelayFollowsTheRequestBeforeInItsSession) {
  const auto [trace, remarks] = readOf(
      "{\"timestamp\": 100, \"session_id\": \"a\", \"input_length\": 1}\n"
      "{\"delay\": 50.5, \"session_id\": \"a\", \"input_length\": 2}\n"
      "{\"delay\": 10, \"session_id\": \"a\", \"input_length\": 3}\n"
      "{\"timestamp\": 120, \"session_id\": 7, \"input_length\": 4}\n"
      "{\"delay\": 5, \"session_id\": 7, \"input_length\": 5}\n"
      "{\"delay\": 1, \"session_id\": \"new\", \"input_length\": 6}\n");
  EXPECT_EQ(remarks, std::vector<std::string>());
  std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
  for (const TraceRequest& one : trace.requests) found.emplace_back(one.time_us, one.input_length);
  EXPECT_EQ(
      found,
      (std::vector<std::pair<std::uint64_t, std::uint32_t>>{
          {100'000, 1}, {101'000, 6}, {120'000, 4}, {125'000, 5}, {150'500, 2}, {160'500, 3}}));
}

TEST(ReadTrace, ReadsBailian) {
  const auto [trace, remarks] = readOf(
      "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 61.114, \"input_length\": 33, "
      "\"output_length\": 7, \"type\": \"text\", \"turn\": 1, \"hash_ids\": [8, 9, 8]}\n");
  EXPECT_TRUE(remarks.empty());
  EXPECT_EQ(trace.format, TraceFormat::kBailian);
  EXPECT_EQ(trace.id_tokens, 16U);
  EXPECT_EQ(trace.requests.front().time_us, 61'114'000U);
  EXPECT_EQ(trace.requests.front().hash_ids, (Ids{8, 9, 8}));
}

TEST(ReadTrace, ReadsAzure) {
  const auto [trace, remarks] = readOf(kAzure);
  EXPECT_TRUE(remarks.empty());
  EXPECT_EQ(trace.format, TraceFormat::kAzure);
  EXPECT_EQ(trace.id_tokens, 0U);
  EXPECT_DOUBLE_EQ(secondsOf(trace), 0.5);
  EXPECT_EQ(trace.requests[1].input_length, 200U);
  EXPECT_EQ(trace.requests[1].output_length, 20U);
}

TEST(ReadTrace, ReadsBurstGptWithoutFailedRequests) {
  const auto [trace, remarks] =
      readOf(kBurstGpt + "50,3,,GPT-4,12,0,12,API log\n51,3,,GPT-4,0,0,0,API log\n");
  EXPECT_EQ(trace.format, TraceFormat::kBurstGpt);
  ASSERT_EQ(trace.requests.size(), 2U);
  EXPECT_EQ(trace.requests[1].time_us, 45'250'000U);
  EXPECT_EQ(remarks, (std::vector<std::string>{"1 request has no tokens: left out",
                                               "1 request failed: left out"}));
}

TEST(ReadTrace, ReadsOtherLineEndsQuotesAndABom) {
  const auto [trace, remarks] = readOf(
      "\xef\xbb\xbf\"TIMESTAMP\" , \"ContextTokens\",\"GeneratedTokens\",\"a, b\"\r\n\r\n"
      "\"2023-11-16 00:00:01\",100,10,\"x\"\r\n");
  EXPECT_EQ(trace.requests.size(), 1U);
  EXPECT_EQ(readOf("\xef\xbb\xbf" + kMooncake).trace, readOf(kMooncake).trace);
}

TEST(ReadTrace, SortsByTime) {
  const auto [trace, remarks] = readOf(kAzure + "2023-11-16 00:00:00,300,30\n");
  EXPECT_EQ(trace.requests.front().input_length, 300U);
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0],
            "1 request is earlier than the line above: requests are replayed in the order of their "
            "times");
}

TEST(ReadTrace, ReadsTheFirstRequests) {
  const auto trace = readOf(kAzure + "broken", {.requests = 1}).trace;
  EXPECT_EQ(trace.requests.size(), 1U);
}

TEST(ReadTrace, NamesTheWrongLineAndTheFormat) {
  struct BadLine {
    const char *line, *says;
  };
  const BadLine cases[] = {
      {"{", "too early"},
      {"[1]", "no JSON object"},
      {"1,2,3", "no JSON object"},
      {R"({"input_length": 1})", "timestamp is missing"},
      {R"({"timestamp": 1})", "input_length is missing"},
      {R"({"timestamp": -1, "input_length": 1})", "timestamp is out of range"},
      {R"({"timestamp": 1e18, "input_length": 1})", "timestamp is out of range"},
      {R"({"timestamp": "1", "input_length": 1})", "timestamp is no number"},
      {R"({"timestamp": 1, "input_length": 1.5})", "input_length is no whole number"},
      {R"({"timestamp": 1, "input_length": 16777217})", "input_length is out of range"},
      {R"({"timestamp": 1, "input_length": 1, "output_length": 1e99})",
       "output_length is out of range"},
      {R"({"timestamp": 1, "input_length": 1, "hash_ids": 1})", "hash_ids is no list"},
      {R"({"timestamp": 1, "input_length": 1, "hash_ids": ["a"]})", "hash_ids is no number"},
  };
  for (const BadLine& one : cases) expectError(kMooncake + one.line + "\n", {"line 4: ", one.says});
  expectError(kMooncake + "{\"timestamp\": 1}\n", {"taken for a trace in Mooncake's format"});
  expectError(kAzure + "2023-11-16 00:00:03,1\n", {"line 4: 2 fields, but the header has 3"});
  expectError(kAzure + "16.11.2023,1,1\n", {"line 4: TIMESTAMP is no date"});
  expectError(kAzure + "2023-11-16 00:00:03,x,1\n", {"line 4: ContextTokens is no number"});
  expectError(kBurstGpt + "5,1,1,GPT-4,,1,1,API log\n", {"line 4: Request tokens is missing"});
  expectError(kBurstGpt + "\"5,1,1,GPT-4,1,1,1,API log\n", {"line 4: a quoted field has no end"});
}

TEST(ReadTrace, NamesTheNearestFormat) {
  expectError(
      R"({"chat_id": 1, "timestamp": 2})",
      {"line 1: no trace format fits", "that of Alibaba Bailian, and input_length is missing",
       "mooncake (JSON lines: input_length)"});
  expectError(R"({"text_input": "hello"})", {"that of Mooncake, and input_length is missing"});
  expectError("TIMESTAMP,ContextTokens\n",
              {"line 1: no trace format fits", "that of Azure, and GeneratedTokens is missing"});
  expectError("Timestamp,Model,Request tokens\n", {"BurstGPT, and Response tokens is missing"});
  expectError("hello\n", {"line 1: no trace format fits"});
}

TEST(ReadTrace, RecognisesOtherFiles) {
  expectError("", {"no request", "the file is empty", "viaduct kv generate"});
  expectError("\n\n", {"no request"});
  expectError("TIMESTAMP,ContextTokens,GeneratedTokens\n", {"no request"});
  expectError("{\"timestamp\": 1, \"input_length\": 0}\n", {"1 request has no tokens"});
  expectError("\x1f\x8b garbage", {"compressed by gzip", "gunzip"});
  expectError("PAR1", {"a Parquet file"});
  expectError("version https://git-lfs.github.com/spec/v1\n", {"Git LFS", "git lfs pull"});
  expectError("<!DOCTYPE html>\n", {"a web page"});
  expectError(std::string("\xff\xfe{\0", 4), {"UTF-16"});
  expectError(std::string("ab\0c", 4), {"binary data"});
  expectError("[\n", {"line 1: no JSON object"});
}

TEST(ReadTrace, SaysThatTheLastLineIsCutOff) {
  expectError(kMooncake + R"({"timestamp": 30, "input_le)", {"line 4: ", "was cut off"});
  expectError(kAzure + "2023-11-16 00:00:03,1",
              {"line 4: ", "was cut off", "remove its last line"});
  EXPECT_EQ(readOf(kAzure + "2023-11-16 00:00:03,1,1").trace.requests.size(), 3U);
}

class ReadTraceFile : public ::testing::Test {
 protected:
  ReadTraceFile() : file_(::testing::TempDir() + "viaduct_trace_" + std::to_string(::getpid())) {}
  ~ReadTraceFile() override { std::filesystem::remove(file_); }
  Result<ReadTrace> read(const std::string& text, const TraceReading& how = {}) {
    std::ofstream(file_) << text;
    return readTrace(file_, how);
  }
  const std::string file_;
};

TEST_F(ReadTraceFile, IsReadInPartsAsInOne) {
  std::string text = kAzure;
  while (text.size() < 1'200'000) text += "2023-11-16 00:00:03,1,1\n";
  std::uint64_t seen = 0;
  const auto read_in_parts = read(text, {.progress = [&](std::uint64_t done) { seen = done; }});
  ASSERT_TRUE(read_in_parts) << read_in_parts.error().text();
  EXPECT_EQ(read_in_parts->trace, readOf(text).trace);
  EXPECT_GT(seen, 40'000U);
  const auto broken = read(text + "x");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().detail, "line 50000: 1 field, but the header has 3");
  EXPECT_EQ(read(text + "x", {.requests = 7})->trace.requests.size(), 7U);
}

TEST_F(ReadTraceFile, RefusesLongLines) {
  const auto read_long = read("{\"a\": " + std::string(5'000'000, '['));
  ASSERT_FALSE(read_long);
  EXPECT_NE(read_long.error().text().find("line 1: longer than 4"), std::string::npos)
      << read_long.error().text();
  EXPECT_FALSE(read("{\"a\": " + std::string(300'000, '[') + "\n"));
  EXPECT_FALSE(readTrace("/"));
  EXPECT_FALSE(readTrace("/nowhere"));
}

}  // namespace
}  // namespace viaduct::measure
