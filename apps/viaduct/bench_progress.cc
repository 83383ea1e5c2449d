#include "viaduct/bench_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/sizes.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kRedraw = 200ms;
constexpr auto kLogEvery = 5s;  // a short run prints no line into a log file
constexpr std::size_t kBar = 10;

}  // namespace

std::string progressLine(std::size_t done, std::size_t rows, const std::string& text,
                         std::size_t width) {
  const std::size_t marks = kBar * done / std::max<std::size_t>(rows, 1);
  const std::string bar = std::string(marks, '#') + std::string(kBar - marks, '.') + " ";
  const bool room = base::shownWidth(bar + text) < width;
  return base::shortened(room ? bar + text : text, width - 1);
}

StatusLine::StatusLine(bool quiet)
    : terminal_(::isatty(STDERR_FILENO) == 1), quiet_(quiet), said_(Clock::now()) {}

bool StatusLine::due() {
  const auto now = Clock::now();
  if (quiet_ || now < said_ + (terminal_ ? Duration(kRedraw) : Duration(kLogEvery))) return false;
  said_ = now;
  return true;
}

void StatusLine::show(const std::string& line) const {
  if (quiet_) return;
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r\033[K" : "", line, terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void StatusLine::erase() const {
  if (terminal_ && !quiet_) fmt::print(stderr, "\r\033[K");
}

PreparationLine::PreparationLine() : line_(::isatty(STDERR_FILENO) != 1) {}

void PreparationLine::tick(const std::string& step, std::uint64_t done) {
  if (line_.due())
    line_.show(
        base::shortened(fmt::format("{}: {}", step, done), base::terminalWidth(STDERR_FILENO) - 1));
}

BenchProgress::BenchProgress(std::size_t rows, bool quiet) : rows_(rows), line_(quiet) {}

std::string BenchProgress::text(const std::string& rate) const {
  const auto left = time_left_.at(Clock::now(), rows_);
  return fmt::format("[{}/{}] {}{}{}", number_ + 1, rows_, what_, rate,
                     left ? fmt::format(", about {} s left", left->count()) : "");
}

void BenchProgress::started(std::size_t number, const measure::Workload& row) {
  started(number, fmt::format("{}{}{}{}{} {} x {}", part_, part_.empty() ? "" : ": ", row.backend,
                              row.backend.empty() ? "" : " ", opKindName(row.op), row.batch,
                              base::showSize(row.block_bytes)));
}

void BenchProgress::started(std::size_t number, std::string what) {
  time_left_.start(number, Clock::now());
  number_ = number;
  measuring_ = true;
  what_ = std::move(what);
  now_.clear();
  draw(last_);
}

void BenchProgress::tick(double gb_per_s) {
  if (gb_per_s > 0) now_ = fmt::format(", {:.3g} GB/s so far", gb_per_s);
  draw(last_);
}

void BenchProgress::preparing(const char* what, std::uint64_t done, std::uint64_t of) {
  if (!line_.due()) return;
  now_ = fmt::format(", {}: {} of {}", what, done, of);
  show(now_);
}

void BenchProgress::interval(const measure::RateInterval& interval, std::FILE* to) {
  line_.erase();
  fmt::print(to, "{}: {:.2f} to {:.2f} s: {:.3g} GB/s\n", what_, interval.start, interval.end,
             interval.gb_per_s);
  std::fflush(to);
}

void BenchProgress::draw(const std::string& in_log) {
  if (line_.due()) show(in_log);
}

void BenchProgress::show(const std::string& in_log) const {
  line_.show(line_.onTerminal() ? progressLine(number_, rows_, text(now_.empty() ? last_ : now_),
                                               base::terminalWidth(STDERR_FILENO))
                                : text(in_log));
}

void BenchProgress::finished(const measure::Row& row) {
  if (row.gb_per_s) last_ = fmt::format(", {:.3g} GB/s before", *row.gb_per_s);
  clear();
}

void BenchProgress::waiting(const std::string& line) {
  if (measuring_) return draw(last_);
  clear();
  remark(line);
}

void BenchProgress::clear() {
  measuring_ = false;
  line_.erase();
}

}  // namespace viaduct::app
