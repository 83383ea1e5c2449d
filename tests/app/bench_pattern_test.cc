// `viaduct pattern`: the traffic of collectives, as users run it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/program.h"
#include "support/free_port.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;
using Pairs = std::set<std::pair<int, int>>;

class BenchPattern : public ::testing::Test {
 protected:
  BenchPattern()
      : file_(::testing::TempDir() + "viaduct_pattern_" + std::to_string(::getpid()) + ".json") {}
  ~BenchPattern() override { std::filesystem::remove(file_); }

  // Returns the rows of a run with these flags.
  Json measured(const std::string& pattern, const Words& more) {
    Words words{"pattern", pattern, "--iterations", "5", "--json", file_};
    words = withFlags(std::move(words), more);
    Program run(words);
    EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
    out_ = run.out();
    std::ifstream in(file_);
    return Json::parse(in).at("rows");
  }
  std::string file_, out_;
};

Pairs pairsOf(const Json& row) {
  Pairs out;
  for (const Json& pair : row.at("pairs"))
    out.emplace(pair.at("initiator").get<int>(), pair.at("target").get<int>());
  return out;
}

void expectBelieved(const Json& row) {
  EXPECT_TRUE(row.at("verdict") == "ok" || row.at("verdict") == "unproven") << row.dump();
  EXPECT_EQ(row.at("operation").at("wrong"), 0);
  EXPECT_GT(row.at("operation").at("time_us"), 0.0);
  for (const Json& share : row.at("path")) EXPECT_EQ(share.at("backend"), row.at("backend"));
}

TEST_F(BenchPattern, EachPatternMovesItsTrafficOverEachBackend) {
  const Pairs ring{{0, 1}, {1, 2}, {2, 0}}, chain{{0, 1}, {1, 2}};
  const Pairs all{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}};
  const std::tuple<const char*, Pairs, double> cases[] = {{"sendrecv", ring, 1},
                                                          {"broadcast", chain, 1},
                                                          {"alltoall", all, 2.0 / 3},
                                                          {"allgather", ring, 2.0 / 3},
                                                          {"allreduce-traffic", ring, 4.0 / 3}};
  for (const auto& [pattern, pairs, factor] : cases) {
    const Json rows =
        measured(pattern, {"--members", "3", "--backend", "local,tcp", "--block-sizes", "48K"});
    ASSERT_EQ(rows.size(), 2U);
    for (const Json& row : rows) {
      expectBelieved(row);
      EXPECT_EQ(row.at("scheme"), pattern);
      EXPECT_EQ(pairsOf(row), pairs) << pattern;
      EXPECT_EQ(row.at("iterations"), 5 * pairs.size());
      const Json& operation = row.at("operation");
      EXPECT_EQ(operation.at("size"), 48 << 10);
      EXPECT_NEAR(operation.at("busbw").get<double>() / operation.at("algbw").get<double>(), factor,
                  1e-9);
    }
    EXPECT_TRUE(has(out_, std::string(pattern) + " of 3 members")) << out_;
    EXPECT_TRUE(has(out_, "algbw    busbw #wrong")) << out_;
  }
}

// Writes a matrix to a file, which is removed at the end.
class MatrixFile {
 public:
  explicit MatrixFile(const std::string& text)
      : name_(::testing::TempDir() + "viaduct_matrix_" + std::to_string(::getpid()) + ".txt") {
    std::ofstream(name_) << text;
  }
  ~MatrixFile() { std::filesystem::remove(name_); }
  MatrixFile(const MatrixFile&) = delete;
  MatrixFile& operator=(const MatrixFile&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

TEST_F(BenchPattern, AFileSaysWhoSendsHowMuchToWhom) {
  const MatrixFile matrix(
      "# two prefill members, two decode members\n0 0 1M 64K\n0 0 4K 1M\n0 0 0 0\n0 0 0 0\n");
  const Json rows = measured(matrix.name(), {"--backend", "local,tcp"});
  ASSERT_EQ(rows.size(), 2U);
  for (const Json& row : rows) {
    expectBelieved(row);
    EXPECT_EQ(pairsOf(row), (Pairs{{0, 2}, {0, 3}, {1, 2}, {1, 3}}));
    const Json& operation = row.at("operation");
    EXPECT_EQ(operation.at("size"), (2 << 20) + (68 << 10));
    EXPECT_NEAR(operation.at("busbw").get<double>() / operation.at("algbw").get<double>(),
                1088.0 / 2116.0, 1e-9);
  }
}

TEST_F(BenchPattern, AFileThatDoesNotFitIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"0 1K 1K\n1K 0 1K\n1K 1K 0\n", " has 3 members, and the run has 4"},
      {"0 1K\n1K 0\n", "has 2 members, and the run has 4"},
      {"0 1K\n1K 4X\n", "line 2 column 4: \"4X\" has an unknown or no unit"}};
  for (const auto& [text, said] : cases) {
    const MatrixFile matrix(text);
    Program run({"pattern", matrix.name(), "--members", "4", "--backend", "tcp"});
    EXPECT_EQ(run.finish(), 2) << run.out();
    EXPECT_TRUE(has(run.err(), said)) << run.err();
  }
}

TEST_F(BenchPattern, ReceiversReadWhatSendersWouldWrite) {
  const Json rows = measured(
      "broadcast", {"--members", "4", "--backend", "tcp", "--block-sizes", "64K", "--op", "read"});
  ASSERT_EQ(rows.size(), 1U);
  expectBelieved(rows[0]);
  EXPECT_EQ(pairsOf(rows[0]), (Pairs{{1, 0}, {2, 1}, {3, 2}}));
}

TEST_F(BenchPattern, MembersMeetAsInOtherRuns) {
  const std::string where = "127.0.0.1:" + std::to_string(freePort());
  const auto member = [&](const char* rank) {
    return Words{"pattern",      "alltoall", "--members", "3",    "--meet",         where,
                 "--rank",       rank,       "--backend", "tcp",  "--block-sizes",  "48K",
                 "--iterations", "5",        "--output",  "json", "--meet-timeout", "20s"};
  };
  Program lead(member("0")), second(member("1")), third(member("2"));
  EXPECT_EQ(lead.finish(), 0) << lead.err();
  EXPECT_EQ(second.finish(), 0) << second.err();
  EXPECT_EQ(third.finish(), 0) << third.err();
  const Json json = Json::parse(lead.out());
  expectBelieved(json.at("rows").at(0));
  EXPECT_EQ(json.at("environment").at("members").at(2).at("role"), "member");
}

TEST_F(BenchPattern, UncheckedTransfersAreNotCounted) {
  const Json json =
      measured("sendrecv", {"--backend", "local", "--block-sizes", "4K", "--verify", "off"});
  EXPECT_FALSE(json.at(0).at("operation").contains("wrong")) << "nothing was checked";
}

TEST_F(BenchPattern, TwoSettingsAreCompared) {
  Program run({"pattern", "sendrecv", "--members", "3", "--backend", "local", "--block-sizes",
               "64K", "--iterations", "20", "--rounds", "4", "--against", "--memory malloc"});
  EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
  EXPECT_TRUE(has(run.out(), "memory: A allocate, B malloc")) << run.out();
}

}  // namespace
}  // namespace viaduct::testing
