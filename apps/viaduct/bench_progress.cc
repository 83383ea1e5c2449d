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

BenchProgress::BenchProgress(std::size_t rows, bool quiet)
    : rows_(rows), terminal_(::isatty(STDERR_FILENO) == 1), quiet_(quiet), said_(Clock::now()) {}

std::string BenchProgress::text(const std::string& rate) const {
  const auto left = time_left_.at(Clock::now(), rows_);
  return fmt::format("[{}/{}] {}{}{}", number_ + 1, rows_, what_, rate,
                     left ? fmt::format(", about {} s left", left->count()) : "");
}

void BenchProgress::show() const {
  fmt::print(stderr, "\r\033[K{}",
             progressLine(number_, rows_, text(now_.empty() ? last_ : now_),
                          base::terminalWidth(STDERR_FILENO)));
  std::fflush(stderr);
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

void BenchProgress::preparing(std::uint64_t done, std::uint64_t of) {
  now_ = fmt::format(", preparing storage: {} of {}", done, of);
  draw(now_);
}

void BenchProgress::interval(const measure::RateInterval& interval, std::FILE* to) {
  erase();
  fmt::print(to, "{}: {:.2f} to {:.2f} s: {:.3g} GB/s\n", what_, interval.start, interval.end,
             interval.gb_per_s);
  std::fflush(to);
}

void BenchProgress::draw(const std::string& in_log) {
  const auto now = Clock::now();
  if (quiet_ || now < said_ + (terminal_ ? Duration(kRedraw) : Duration(kLogEvery))) return;
  said_ = now;
  if (terminal_)
    show();
  else
    fmt::print(stderr, "{}\n", text(in_log));
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
  erase();
}

void BenchProgress::erase() const {
  if (terminal_ && !quiet_) fmt::print(stderr, "\r\033[K");
}

}  // namespace viaduct::app
