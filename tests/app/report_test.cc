// `viaduct report` as users run it, and its page in a browser if there is one.
#include "measure/result/report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "app/browser.h"
#include "app/program.h"
#include "measure/result/nixlbench.h"
#include "measure/result/row_figures.h"
#include "measure/result/row_testing.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using measure::Report;
using measure::Row;

std::string contentOf(const std::string& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

class ReportCommand : public ::testing::Test {
 protected:
  ReportCommand()
      : folder_(::testing::TempDir() + "viaduct_report_" + std::to_string(::getpid()) + "/") {
    std::filesystem::create_directories(folder_);
  }
  ~ReportCommand() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + name) << content;
    return folder_ + name;
  }
  std::string result(const std::string& name, std::uint32_t pairs) const {
    Report report{.version = "1", .started = "2026-01-02T03:04:05Z"};
    report.environment.members = {{.host = {.hostname = "node <b>&"}}};
    for (std::uint64_t block = 4096; block <= 1 << 26U; block *= 4)
      for (const char* backend : {"tcp", "local"}) {
        Row& row = report.rows.emplace_back(measure::withCounts(
            {.backend = backend,
             .block_size = block,
             .initiators = pairs,
             .targets = pairs,
             .path = {{backend, "way", "eth0", 1, 1, measure::Proven::kYes}},
             .proof =
                 "a long line of words that says how it was proven, on every device; and 2 more",
             .ceiling = measure::Ceiling{"link eth0", 12.5 * pairs, 24}},
            {2.9 * pairs, 3.0 * pairs, 3.2 * pairs}));
        measure::MemberCounts& member = row.counts->members.front();
        member.cpu_s = 0.3e-9 * static_cast<double>(member.bytes);
        computeFigures(row);
      }
    report.rows[3].verdict = measure::Verdict::kInvalid;
    report.rows[3].why = "<script>alert(1)</script>";
    return file(name, toJson(report));
  }
  std::string log() const {
    constexpr auto kUsual = measure::NixlbenchColumns::kUsual;
    const Row row{.block_size = 4096, .gb_per_s = 1, .tx_us = measure::MeanP99{1, 2}};
    return file("pod.log", measure::nixlbenchBanner({}) + measure::nixlbenchHead(kUsual) +
                               measure::nixlbenchLine(row, kUsual));
  }
  std::string folder_;
};

TEST_F(ReportCommand, WritesThePage) {
  const std::string page = folder_ + "r.html";
  Program run({"report", result("a.json", 1), result("b.json", 2), log(), "-o", page});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_EQ(run.out(), "");
  const std::string html = contentOf(page);
  EXPECT_TRUE(html.ends_with("</html>\n"));
  for (const char* part : {"b.json", "pod.log", "id=\"scaling\"", "✗ INVALID"})
    EXPECT_TRUE(has(html, part)) << part;
  Program to_stdout({"report", result("a.json", 1), "-o", "-"});
  EXPECT_EQ(to_stdout.finish(), 0);
  EXPECT_TRUE(to_stdout.out().starts_with("<!DOCTYPE html>"));
}

TEST_F(ReportCommand, BadInputIsNamed) {
  const std::string good = result("a.json", 1), out = folder_ + "r.html";
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"report", good}, "--output is required"},
      {{"report", "-o", out}, "FILES is required"},
      {{"report", folder_ + "none.json", "-o", out}, "none.json"},
      {{"report", good, file("cut.json", "{\"format\": \"viaduct-be"), "-o", out}, "cut.json"},
      {{"report", file("new.json", "{\"format\": \"viaduct-bench/3\"}"), "-o", out},
       "its format is viaduct-bench/3"},
  };
  for (const auto& [arguments, words] : cases) {
    Program run(arguments);
    EXPECT_EQ(run.finish(), 2) << words;
    EXPECT_TRUE(has(run.err(), words)) << run.err();
    EXPECT_FALSE(std::filesystem::exists(out)) << "nothing is written of half of the files";
  }
  Program nowhere({"report", good, "-o", "/no/such/folder/r.html"});
  EXPECT_EQ(nowhere.finish(), 1);
  EXPECT_TRUE(has(nowhere.err(), "/no/such/folder/r.html: ") ||
              has(nowhere.err(), "file /no/such/folder/r.html"))
      << nowhere.err();
  Program full({"report", good, "-o", "/dev/full"});
  EXPECT_EQ(full.finish(), 1);
  EXPECT_TRUE(has(full.err(), "No space left")) << full.err();
}

// --- in a browser

class ReportPage : public ReportCommand {
 protected:
  void SetUp() override {
    if (browser().empty()) GTEST_SKIP() << "skipped: no chromium on this machine";
    page_ = folder_ + "r.html";
    Program run({"report", result("a.json", 1), result("b.json", 2), log(), "-o", page_});
    ASSERT_EQ(run.finish(), 0) << run.err();
  }
  std::string load(const std::string& page, const std::string& size, std::string& log) const {
    auto [dom, messages] = testing::load(page, size, folder_);
    log = std::move(messages);
    return dom;
  }
  std::string page_;
};

TEST_F(ReportPage, LoadsWithoutAWordOnTheConsole) {
  std::string log;
  const std::string dom = load(page_, "1280,900", log);
  EXPECT_TRUE(has(dom, "</html>")) << log;
  EXPECT_FALSE(has(log, "CONSOLE")) << log;
}

// A copy of the page without its rule against scripts measures itself. It runs in a frame of the
// wanted width, because windows have a least width, and reports through the frame's attributes.
constexpr auto kMeasure = R"JS(<script>
const says = frameElement.dataset, root = document.documentElement;
const charts = [...document.querySelectorAll('svg.chart')];
const isDrawn = (s) => s.clientWidth > 300 && s.querySelector('.line').getBBox().width > 100;
const heights = charts.flatMap((s) => [...s.querySelectorAll('text')])
    .map((t) => t.getBoundingClientRect().height).filter((h) => h > 0);
says.width = innerWidth;
says.sideways = root.scrollWidth > innerWidth;
says.drawn = charts.filter(isDrawn).map((s) => s.getAttribute('aria-labelledby').split('-t')[0]).join(' ');
const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const ceilings = charts.filter(isDrawn)
    .map((s) => [...s.querySelectorAll('.levelname')].map((t) => t.getBoundingClientRect()));
says.ceilings = ceilings.flat().length > 1 && ceilings.every((names) => names.every((a, i) =>
    names.every((b, k) => k <= i || !over(a, b))));
says.outcome = [...document.querySelectorAll('.path')].every(
    (p) => p.offsetWidth > 0 && p.getBoundingClientRect().right <= innerWidth);
says.readable = Math.min(...heights) >= 10;
const middle = (e) => { const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; };
const near = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) < 3;
const shown = (e) => getComputedStyle(e).clipPath == 'none';
const plots = charts.filter(isDrawn).map((s) => s.parentElement);
says.covered = plots.every((p) => {
  const marks = [...p.querySelectorAll('.mark > g')], stops = [...p.querySelectorAll('input')];
  return stops.length == marks.length && stops.every((s, i) => near(middle(s), middle(marks[i])));
});
says.told = plots.every((p) => [...p.querySelectorAll('input')].every((i) => {
  i.focus();
  const words = i.nextElementSibling, box = words.getBoundingClientRect();
  const alone = [...p.querySelectorAll('.stops span')].filter(shown).length == 1;
  const inside = box.left >= 0 && box.right <= innerWidth;
  return document.activeElement == i && shown(words) && alone && inside && words.innerText != '' &&
      getComputedStyle(i).outlineStyle == 'solid';
}));
</script></body>)JS";

TEST_F(ReportPage, FitsAPhoneAndADesk) {
  const std::string copy = replaced(replaced(contentOf(page_), "Content-Security-Policy", "x-none"),
                                    "</body>", kMeasure);
  const std::pair<int, const char*> cases[] = {
      {1280, "bandwidth-wide latency-wide cpu-wide scaling-wide"},
      {390, "bandwidth-narrow latency-narrow cpu-narrow scaling-narrow"}};
  for (const auto& [width, drawn] : cases) {
    std::string log;
    const std::string dom = load(file("frame.html", framed(copy, width)), "1400,900", log);
    EXPECT_TRUE(has(dom, "data-width=\"" + std::to_string(width) + "\"")) << log;
    EXPECT_TRUE(has(dom, "data-sideways=\"false\"")) << width << ": it scrolls sideways";
    EXPECT_TRUE(has(dom, "data-drawn=\"" + std::string(drawn) + "\"")) << width;
    EXPECT_TRUE(has(dom, "data-ceilings=\"true\"")) << width << ": names of ceilings overlap";
    EXPECT_TRUE(has(dom, "data-outcome=\"true\"")) << width << ": a path is out of sight";
    EXPECT_TRUE(has(dom, "data-readable=\"true\"")) << width << ": letters too small to read";
    EXPECT_TRUE(has(dom, "data-covered=\"true\"")) << width << ": a mark without a tab stop on it";
    EXPECT_TRUE(has(dom, "data-told=\"true\"")) << width << ": a point in focus is not told";
  }
}

}  // namespace
}  // namespace viaduct::testing
