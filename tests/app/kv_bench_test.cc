// `viaduct kv bench`: KV caches between two processes, as users run it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/program.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class KvBench : public ::testing::Test {
 protected:
  KvBench()
      : file_(::testing::TempDir() + "viaduct_kv_bench_" + std::to_string(::getpid()) + ".json") {}
  ~KvBench() override { std::filesystem::remove(file_); }

  Json measured(const Words& more) {
    Words words{"kv", "bench", "Llama-3.1-8B", "--tokens", "64", "--json", file_};
    words = withFlags(std::move(words), more);
    Program run(words);
    EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
    out_ = run.out();
    err_ = run.err();
    std::ifstream in(file_);
    return Json::parse(in).at("rows");
  }
  std::string file_, out_, err_;
};

TEST_F(KvBench, PagedRowsStandBesideBulkRowsOverEachBackend) {
  for (const char* op : {"pull", "push"}) {
    const Json rows = measured({"--backend", "local,tcp", "--op", op, "--requests", "2"});
    ASSERT_EQ(rows.size(), 2U * 3 * 2);  // backends, trials, paged and bulk
    std::size_t bulk = 0;
    for (const Json& row : rows) {
      EXPECT_TRUE(row.at("verdict") == "ok" || row.at("verdict") == "unproven") << row.dump();
      EXPECT_EQ(row.at("op"), std::string(op) == "pull" ? "read" : "write");
      EXPECT_EQ(row.at("block_size"), 64 * 131'072);
      EXPECT_EQ(row.at("batch_size"), 2);
      EXPECT_EQ(row.at("iterations"), 8);
      EXPECT_EQ(row.at("checks").at("smallest_caught"), 0.0);  // every burst was checked
      EXPECT_TRUE(row.at("latency_us").contains("min"));
      const Json& kv = row.at("kv");
      EXPECT_EQ(kv.at("descriptors"), kv.at("bulk").get<bool>() ? 2 : 2 * 4 * 64);
      EXPECT_LE(kv.at("runs"), kv.at("descriptors"));
      EXPECT_GT(kv.at("checked_words"), 0);
      EXPECT_EQ(kv.contains("of_bulk"), !kv.at("bulk").get<bool>());
      bulk += kv.at("bulk").get<bool>() ? 1U : 0U;
      for (const Json& share : row.at("path")) EXPECT_EQ(share.at("backend"), row.at("backend"));
    }
    EXPECT_EQ(bulk, 6U);
    EXPECT_TRUE(has(out_, std::string("tcp ") + op + ", Llama-3.1-8B, TP 1, nhd, apart")) << out_;
  }
}

TEST_F(KvBench, AReshardedCacheArrivesWhole) {
  const Json rows = measured({"--tp", "4", "--tp-to", "8", "--block-to", "64", "--backend", "local",
                              "--verify", "full", "--repeat", "1"});
  ASSERT_EQ(rows.size(), 2U);
  const Json& kv = rows[0].at("kv");
  EXPECT_EQ(rows[0].at("verified"), "full");
  EXPECT_EQ(kv.at("order"), "hnd");
  EXPECT_EQ(kv.at("destination_block"), 64);
  EXPECT_EQ(kv.at("checked_words").get<std::uint64_t>(),
            8 * rows[0].at("block_size").get<std::uint64_t>() / 8);
}

TEST_F(KvBench, LeavesOutWhatDoesNotFitAndSaysSo) {
  const Json rows =
      measured({"--backend", "tcp", "--repeat", "1", "--requests", "1,8", "--pool-budget", "32M"});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("kv").at("table_sets"), 1);
  EXPECT_TRUE(has(err_, "8 requests: a pool needs 336.0 MiB, and 32 MiB is the budget; left out"))
      << err_;
  EXPECT_TRUE(has(err_, "measured with 1 of 4 table sets")) << err_;
}

TEST_F(KvBench, ComparesTwoSettingsInTurns) {
  Program run({"kv", "bench", "Qwen3-8B", "--tokens", "32", "--backend", "tcp", "--repeat", "2",
               "--rounds", "4", "--against", "--block 32", "--output", "json"});
  run.finish();
  const Json found = Json::parse(run.out());
  ASSERT_EQ(found.at("rows").size(), 2U) << run.out() << run.err();
  EXPECT_EQ(found.at("runs_a"), 4);
}

TEST_F(KvBench, CompareAndReportReadItsFiles) {
  measured({"--backend", "tcp", "--repeat", "1"});
  const std::string other = file_ + ".b", page = file_ + ".html";
  std::filesystem::rename(file_, other);
  measured({"--backend", "tcp", "--repeat", "1"});
  Program compare({"compare", other, file_});
  compare.finish();
  EXPECT_TRUE(has(compare.out(), "tcp")) << compare.out() << compare.err();
  Program report({"report", file_, "-o", page});
  EXPECT_EQ(report.finish(), 0) << report.err();
  std::ifstream in(page);
  const std::string html(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(has(html, "kv-paged, Llama-3.1-8B, block 16")) << html.size();
  std::filesystem::remove(other);
  std::filesystem::remove(page);
}

TEST_F(KvBench, TellsWhatIsWrong) {
  struct Case {
    Words words;
    const char* says;
  };
  const Case cases[] = {
      {{"Lama-3.1-8B"}, "did you mean Llama-3.1-8B?"},
      {{"Llama-3.1-8B", "--tp", "3"}, "the nearest tp is 2 or 4"},
      {{"Llama-3.1-8B", "--tp-to", "5"}, "5 ranks can neither divide nor copy"},
      {{"Llama-3.1-8B", "--arrangement", "raws"}, "\"raws\" is none of apart, together, rows"},
      {{"Llama-3.1-8B", "--order", "dhn"}, "\"dhn\" is none of nhd, hnd"},
      {{"Llama-3.1-8B", "--tokens", "0"}, "\"0\" is not a whole number from 1"},
      {{"Llama-3.1-8B", "--batch", "2"}, "--batch: invalid: it is a flag of `viaduct bench`"},
      {{"Llama-3.1-8B", "--block-sizes", "4K"}, "did you mean --block?"},
      {{"Llama-3.1-8B", "--backend", "file"}, "storage is no member"},
      {{"Llama-3.1-8B", "--tokens", "8192", "--pool-budget", "1M"}, "even for one table set"},
      {{"DeepSeek-V4-Pro", "--block", "16"}, "DeepSeek-V4-Pro prescribes its blocks"},
  };
  for (const Case& one : cases) {
    Words words{"kv", "bench"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    Program run(words);
    EXPECT_EQ(run.finish(), 2) << run.out();
    EXPECT_TRUE(has(run.err(), one.says)) << one.says << "\n" << run.err();
  }
  Program alone({"bench", "--tp-to", "2"});
  EXPECT_EQ(alone.finish(), 2);
  EXPECT_TRUE(has(alone.err(), "--tp-to: invalid: it is a flag of `viaduct kv bench`"))
      << alone.err();
}

}  // namespace
}  // namespace viaduct::testing
