#include "measure/report/page.h"

#include <gtest/gtest.h>

#include <set>

#include "support/text.h"

namespace viaduct::measure {
namespace {

using testing::has;

Report report(double scale = 1, std::uint32_t pairs = 1) {
  Report out{.version = "1.2.3",
             .started = "2026-01-02T03:04:05Z",
             .command = "viaduct bench --backend tcp",
             .environment = {.members = {{0, "a", "initiator", {.hostname = "node-1"}},
                                         {1, "b", "target", {.hostname = "node-2"}}},
                             .fingerprint = "0123"},
             .settings = {{"verify", "full"}},
             .agent = {{"sockets", "1"}},
             .conclusion = {"the link limits"}};
  for (const std::uint64_t block : {4096U, 65536U, 1048576U})
    out.rows.push_back(
        {.backend = "tcp",
         .block_size = block,
         .initiators = pairs,
         .targets = pairs,
         .gb_per_s = scale * pairs,
         .latency_us = Latency{.mean = 1, .p50 = 1, .p90 = 2, .p99 = 3, .p99_9 = 4, .max = 5},
         .cpu_s_per_gb = 0.25,
         .path = {{"tcp", "socket", "eth0", 1, 1, Proven::kYes}},
         .ceiling = Ceiling{"link eth0", 12.5, 80},
         .verified = Verified::kFull});
  return out;
}

TEST(Page, HasEverySection) {
  const std::string page = reportPage({{"a.json", report()}, {"b.json", report(1.8, 2)}}, "9.9");
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
  for (const char* part : {"<h2 id=\"bandwidth\">",
                           "<h2 id=\"latency\">",
                           "<h2 id=\"cpu\">",
                           "<h2 id=\"scaling\">",
                           "<h2 id=\"rows\">",
                           "<h2 id=\"environment\">",
                           "<h2 id=\"settings\">",
                           "link eth0: 12.5 GB/s",
                           "✓ 6 rows ok.</b> Path proven: all. Contents checked: all.",
                           "the link limits",
                           "tcp/socket on eth0, proven",
                           "node-2",
                           "Made by viaduct 9.9",
                           "<h1>Viaduct report: tcp on node-1, node-2</h1>",
                           "Measured 2026-01-02 03:04 UTC",
                           "<code>viaduct bench --backend tcp</code>",
                           "<span class=\"good\" style=\"flex-grow:6\">",
                           "1.00 GB/s at 4 KiB, 80 % of link eth0",
                           "tcp, b.json, 2→2",
                           "180 %"})
    EXPECT_TRUE(has(page, part)) << part;
}

TEST(Page, CeilingsThatDependOnTheBlockSizeAreOneLine) {
  Report r = report();
  for (Row& row : r.rows)
    row.ceiling = Ceiling{"memory", 2e7 / static_cast<double>(row.block_size), 10};
  const std::string page = reportPage({{"a.json", r}}, "1");
  EXPECT_TRUE(has(page, "ceiling A: memory: 19.1 to 4883 GB/s</li>"));
  EXPECT_FALSE(has(page, ": memory: 4883 GB/s"));
}

TEST(Page, NeedsNothingFromElsewhere) {
  const std::string page = reportPage({{"a.json", report()}}, "1");
  for (const char* part : {"http:", "https:", "<script", "url(", "@import", "<img", "src="})
    EXPECT_FALSE(has(page, part)) << part;
  EXPECT_TRUE(has(page, "Content-Security-Policy\" content=\"default-src 'none'"));
}

TEST(Page, InvalidRowsAreConspicuous) {
  Report bad = report();
  bad.end = "interrupted";
  bad.rows[1].verdict = Verdict::kInvalid;
  bad.rows[1].why = "above its ceiling";
  bad.rows[2].verdict = Verdict::kUnproven;
  bad.rows[2].why = "counters of eth0 cannot be read";
  const std::string page = reportPage({{"a.json", bad}}, "1");
  for (const char* part :
       {"✗ 1 of 3 rows cannot be used",
        "✗ INVALID</strong> <b>a.json: tcp write, 1 × 64 KiB</b><br>above",
        "! Not complete:</b> a.json: interrupted", "? 1 row unproven", "? 1 unproven</span>",
        "<b>a.json: tcp write, 1 × 1 MiB</b><br>counters of eth0 cannot", "✓ 1 row ok",
        ">INVALID</text>"})
    EXPECT_TRUE(has(page, part)) << part;
}

TEST(Page, UnprovenRowsAreGroupedByReason) {
  Report r = report();
  for (Row& row : r.rows) row.verdict = Verdict::kUnproven;
  r.rows[0].proof = r.rows[1].proof = "no counters";
  const std::string page = reportPage({{"a.json", r}}, "1");
  EXPECT_TRUE(has(page,
                  "<b>a.json: tcp write, 1 × 4 KiB; a.json: tcp write, 1 × 64 KiB</b><br>no "
                  "counters</li>"));
  EXPECT_TRUE(has(page, "<b>a.json: tcp write, 1 × 1 MiB</b><br>no counter could"));
}

TEST(Page, ManyRowsWithOneReasonAreCounted) {
  Report r = report();
  for (int i = 0; i < 7; ++i) r.rows.push_back({.backend = "tcp", .block_size = 1000U << i});
  for (Row& row : r.rows) row.verdict = Verdict::kUnproven;
  EXPECT_TRUE(has(reportPage({{"a.json", r}}, "1"), "1 × 4 KB; and 4 more</b><br>no counter"));
}

TEST(Page, TheTitleCanBeGiven) {
  const std::string page = reportPage({{"a.json", report()}}, "1", {}, "Cluster <7>");
  EXPECT_TRUE(has(page, "<title>Cluster &lt;7&gt;</title>"));
  EXPECT_TRUE(has(page, "<h1>Cluster &lt;7&gt;</h1>"));
}

TEST(Page, ColumnsThatSayTheSameInAllRowsAreInTheCaption) {
  const std::string one = reportPage({{"a.json", report()}}, "1");
  EXPECT_TRUE(has(one, "Rates and paths of all rows; file: a.json; backend: tcp; op: write"));
  const auto head = [](const std::string& page) {
    const auto at = page.find("<thead>", page.find("<caption><span>Rates and paths"));
    return page.substr(at, page.find("</thead>", at) - at);
  };
  EXPECT_FALSE(has(head(one), ">file<") || has(head(one), ">scheme<")) << head(one);
  const std::string two = reportPage({{"a.json", report()}, {"b.json", report()}}, "1");
  EXPECT_TRUE(has(head(two), ">file<")) << head(two);
}

TEST(Page, SettingsThatDifferAreApartFromTheOthers) {
  Report other = report();
  other.settings[0].value = "off";
  const std::string page = reportPage({{"a.json", report()}, {"b.json", other}}, "1");
  const auto differ = page.find("<caption><span>Settings that differ"),
             same = page.find("<caption><span>Settings that are the same");
  ASSERT_TRUE(differ != std::string::npos && same != std::string::npos);
  EXPECT_LT(differ, page.find("≠ verify"));
  EXPECT_LT(page.find("≠ verify"), same);
  EXPECT_LT(same, page.find("agent.sockets"));
}

TEST(Page, TextOfAFileIsEscaped) {
  const std::string evil = "\"'><script>alert(1)</script><img src=x onerror=y>\xff";
  Report r = report();
  r.version = r.started = r.end = r.command = r.environment.fingerprint = evil;
  for (RunMember& m : r.environment.members)
    m = {1,
         evil,
         evil,
         {.boot_id = evil,
          .hostname = evil,
          .kernel = evil,
          .cpu_model = evil,
          .interfaces = {{evil, {evil}, true, 1}}}};
  r.settings = r.agent = {{evil, evil}};
  r.conclusion = {evil};
  for (Row& row : r.rows) {
    row.backend = row.scheme = row.memory = row.proof = row.why = evil;
    row.path[0].backend = row.path[0].way = row.path[0].device = evil;
    row.ceiling->name = evil;
    row.verdict = Verdict::kFallback;
  }
  const std::string page = reportPage({{evil, r}, {"b", report(2, 2)}}, evil);
  EXPECT_FALSE(has(page, "<script"));
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_FALSE(has(page, "\xff"));
  EXPECT_TRUE(has(page, "&quot;&#39;&gt;&lt;script&gt;alert(1)"));
}

TEST(Page, IdsAreUnique) {
  const std::string page = reportPage({{"a.json", report()}, {"b.json", report(2, 4)}}, "1");
  std::set<std::string> ids;
  for (auto at = page.find(" id=\""); at != std::string::npos; at = page.find(" id=\"", at + 1)) {
    const std::string id = page.substr(at + 5, page.find('"', at + 5) - at - 5);
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
  EXPECT_GE(ids.size(), 10U);
}

TEST(Page, EmptyAndExtremeRowsShowNoNan) {
  EXPECT_TRUE(has(reportPage({{"a.json", Report{}}}, "1"), "No rows"));
  Report odd;
  odd.rows = {{.backend = "x", .block_size = 1, .gb_per_s = 0},
              {.block_size = 1, .gb_per_s = 1e300}};
  const std::string page = reportPage({{"a.json", odd}}, "1");
  EXPECT_FALSE(has(page, ">nan") || has(page, ">inf") || has(page, "\"nan"));
}

}  // namespace
}  // namespace viaduct::measure
