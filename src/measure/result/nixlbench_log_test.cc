#include "measure/result/nixlbench_log.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "measure/result/log_line.h"
#include "measure/result/nixlbench.h"

namespace viaduct::measure {
namespace {

Row row(std::uint64_t block, double gb) {
  return {.block_size = block,
          .gb_per_s = gb,
          .prep_us = MeanP99{45, 62},
          .post_us = MeanP99{2.5, 3},
          .tx_us = MeanP99{11.4, 18}};
}

// Returns the log of a run with two rows.
std::string log(const std::string& backend, double gb,
                NixlbenchColumns columns = NixlbenchColumns::kUsual,
                std::vector<Option> more = {}) {
  more.insert(more.end(), {{"backend", backend},
                           {"start_block_size", "4096"},
                           {"max_block_size", "8192"},
                           {"num_iter", "1008"}});
  return "Starting ...\n" + nixlbenchBanner(more) + nixlbenchHead(columns) +
         nixlbenchLine(row(4096, gb), columns) + nixlbenchLine(row(8192, 2 * gb), columns);
}

// Applies `change` to every line.
std::string each(const std::string& text, const std::function<std::string(std::string)>& change) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += change(line) + "\n";
  return out;
}

std::vector<Report> read(const std::string& text) {
  auto reports = reportsFromNixlbenchLog(text, "pod.log");
  EXPECT_TRUE(reports) << reports.error().text();
  return reports ? *std::move(reports) : std::vector<Report>{};
}

void expectTheRun(const std::string& text) {
  const auto reports = read(text);
  ASSERT_EQ(reports.size(), 1U) << text;
  const Report& report = reports[0];
  EXPECT_EQ(report.version, "nixlbench");
  EXPECT_EQ(report.end, "complete");
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].backend, "UCX");
  EXPECT_EQ(report.rows[0].block_size, 4096U);
  EXPECT_EQ(report.rows[0].gb_per_s, 1.5);
  EXPECT_EQ(report.rows[1].block_size, 8192U);
  EXPECT_EQ(report.rows[1].gb_per_s, 3.0);
}

TEST(NixlbenchLog, ABadRowKeepsItsVerdict) {
  Row bad = row(4096, 1.5);
  bad.verdict = Verdict::kSilentRail;
  const auto reports =
      read("Starting ...\n" + nixlbenchBanner({}) + nixlbenchHead(NixlbenchColumns::kUsual) +
           nixlbenchLine(bad, NixlbenchColumns::kUsual) +
           nixlbenchLine(row(8192, 3), NixlbenchColumns::kUsual));
  ASSERT_EQ(reports.size(), 1U);
  ASSERT_EQ(reports[0].rows.size(), 2U);
  EXPECT_EQ(reports[0].rows[0].verdict, Verdict::kSilentRail);
  EXPECT_EQ(reports[0].rows[0].gb_per_s, 1.5);
  EXPECT_EQ(reports[0].rows[1].verdict, Verdict::kUnproven);
}

TEST(NixlbenchLog, IsReadAsPrinted) {
  const std::string text = log("UCX", 1.5);
  EXPECT_TRUE(isNixlbenchLog(text));
  expectTheRun(text);
  const Row first = read(text)[0].rows[0];
  EXPECT_EQ(first.prep_us, (MeanP99{45, 62}));
  EXPECT_EQ(first.post_us, (MeanP99{2.5, 3}));
  EXPECT_EQ(first.tx_us, (MeanP99{11.4, 18}));
  EXPECT_EQ(first.iterations, 1008U);
  EXPECT_EQ(first.memory, "DRAM");
}

TEST(NixlbenchLog, ItsInverseRateIsNoLatency) {
  const Report report = read(log("UCX", 1.5))[0];
  for (const Row& r : report.rows) {
    EXPECT_FALSE(r.latency_us);
    EXPECT_EQ(r.verdict, Verdict::kUnproven);
  }
  EXPECT_NE(report.conclusion.at(0).find("inverse of its rate"), std::string::npos);
}

TEST(NixlbenchLog, PrefixesOfLinesAreIgnored) {
  const std::string text = log("UCX", 1.5);
  int n = 0;
  expectTheRun(each(text, [](auto line) { return "[pod/bench-0/nixl] " + line; }));
  expectTheRun(each(text, [](auto line) { return "bench-0  | " + line; }));
  expectTheRun(each(text, [](auto line) { return "bench-0 nixl \xe2\x80\xba " + line; }));
  expectTheRun(each(text, [&](auto line) {
    return "2026-07-28T10:17:" + std::to_string(10 + n++) + ".4871Z stdout F " + line;
  }));
  expectTheRun(each(text, [&](auto line) {
    return "[2026-07-28T10:18:" + std::to_string(10 + n % 50) + ".487Z] " + line + "\r\n";
  }));
  expectTheRun(each(text, [](auto line) { return "\x1b[1;32m" + line + "\x1b[0m"; }));
  EXPECT_EQ(
      read(each(text, [](auto line) { return "[2026-07-28T10:18:59.487Z] " + line; }))[0].started,
      "2026-07-28T10:18:59Z");
}

TEST(NixlbenchLog, OtherLinesBetweenRowsAreIgnored) {
  expectTheRun(each(log("UCX", 1.5), [](auto line) {
    return line + "\n\nI0218 06:59:46.772000 139 cache.py:335] hits: 0\nWARNING: 3 of 4\n+ true";
  }));
}

TEST(NixlbenchLog, SeveralRunsInOneFileAreSeparateReports) {
  const auto reports = read(log("UCX", 1.5) + log("LIBFABRIC", 2, NixlbenchColumns::kUsual,
                                                  {{"op_type", "READ"}, {"num_threads", "4"}}));
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].rows[0].backend, "UCX");
  EXPECT_EQ(reports[1].rows[0].backend, "LIBFABRIC");
  EXPECT_EQ(reports[1].rows[0].op, OpKind::kRead);
  EXPECT_EQ(reports[1].rows[0].threads, 4U);
  EXPECT_EQ(reports[1].rows.size(), 2U);
}

TEST(NixlbenchLog, LinesOfSeveralPodsMayAlternate) {
  std::istringstream a(log("UCX", 1.5)), b(log("LIBFABRIC", 2));
  std::string mixed, line;
  while (std::getline(a, line)) {
    mixed += "[pod/a/bench] " + line + "\n";
    if (std::getline(b, line)) mixed += "[pod/b/bench] " + line + "\n";
  }
  const auto reports = read(mixed);
  ASSERT_EQ(reports.size(), 2U);
  for (const Report& report : reports) {
    const double gb = report.rows.at(0).backend == "UCX" ? 1.5 : 2;
    ASSERT_EQ(report.rows.size(), 2U);
    EXPECT_EQ(report.rows[0].gb_per_s, gb);
    EXPECT_EQ(report.rows[1].gb_per_s, 2 * gb);
  }
}

TEST(NixlbenchLog, ManyPairsAreCountedTogether) {
  const auto reports = read(log("UCX", 12, NixlbenchColumns::kManyPairs,
                                {{"num_initiator_dev", "3"}, {"num_target_dev", "3"}}));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].rows.at(0).gb_per_s, 12.0);
  EXPECT_EQ(reports[0].rows.at(0).initiators, 3U);
}

TEST(NixlbenchLog, TheColumnsOfOlderVersionsAreRead) {
  const auto reports = read(
      "Block Size (B)      Batch Size     Avg Lat. (us)  B/W (MiB/Sec)  B/W (GiB/Sec)  B/W "
      "(GB/Sec)\n"
      "---------\n"
      "4096                1              8.3631         467.082        0.456135       0.489771\n");
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].rows.at(0).gb_per_s, 0.489771);
  EXPECT_EQ(reports[0].rows[0].backend, "unknown");
  EXPECT_FALSE(reports[0].rows[0].tx_us);
}

TEST(NixlbenchLog, ATruncatedLogIsReported) {
  const std::string text = log("UCX", 1.5);
  const std::size_t last = text.find("8192                1");
  ASSERT_NE(last, std::string::npos);
  for (const std::size_t size : {last, last + 4, last + 60, text.find("18.0", last) + 2}) {
    const auto reports = read(text.substr(0, size));
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports[0].rows.size(), 1U) << size;
    EXPECT_EQ(reports[0].end, "the log ends after 1 of 2 rows");
  }
  // The text is cut right after a complete figure, so only blanks are missing.
  expectTheRun(text.substr(0, text.find("18.0", last) + 4));
  const auto none =
      reportsFromNixlbenchLog(text.substr(0, text.find("4096                1")), "x");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("has no rows"), std::string::npos);
}

TEST(NixlbenchLog, SecretsAreNotKept) {
  const auto reports = read(
      "Obj access key (--obj_access_key=key)   : AKIA123\n"
      "Obj secret (--obj_secret_key=key)       : hush\n" +
      log("OBJ", 1));
  for (const Option& option : reports.at(0).settings)
    EXPECT_TRUE(option.value != "AKIA123" && option.value != "hush") << option.name;
}

TEST(NixlbenchLog, LinesThatAreNoRowsAreIgnored) {
  const std::string head = nixlbenchHead(NixlbenchColumns::kUsual);
  const auto refused = [&](const std::string& line) {
    EXPECT_FALSE(reportsFromNixlbenchLog(head + line + "\n", "x")) << line;
  };
  refused("0 1 1 1 1 1 1 1 1 1");
  refused("4096 0 1 1 1 1 1 1 1 1");
  refused("4096.5 1 1 1 1 1 1 1 1 1");
  refused("4096 1 -1 1 1 1 1 1 1 1");
  refused("4096 1 nan 1 1 1 1 1 1 1");
  refused("4096 1 inf 1 1 1 1 1 1 1");
  refused("4096 1 1e999 1 1 1 1 1 1 1");
  refused("1e300 1 1 1 1 1 1 1 1 1");
  refused("4096 1 1 1 1 1 1 1 1");
  refused("4096 1 1 1 1 1 1 1 1 x");
  EXPECT_FALSE(isNixlbenchLog("Block Size (B)"));
  EXPECT_FALSE(isNixlbenchLog(""));
}

TEST(LogLine, SettingsAreFoundInTheirLabels) {
  const auto found = settingIn("[pod/a] Device list (--device_list=dev1,dev2,...)     : mlx5_0:1 ");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "device_list");
  EXPECT_EQ(found->value, "mlx5_0:1");
  EXPECT_EQ(settingIn("ETCD Endpoint       : http://etcd:2379")->value, "http://etcd:2379");
  EXPECT_FALSE(settingIn("4096 1 2"));
  EXPECT_FALSE(settingIn("usage: (--flag=N) without a value"));
}

}  // namespace
}  // namespace viaduct::measure
