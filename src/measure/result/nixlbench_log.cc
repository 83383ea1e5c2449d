#include "measure/result/nixlbench_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"
#include "measure/result/log_line.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kLargeBlock = std::uint64_t{1} << 20U;  // larger blocks: fewer iterations

using Flags = std::map<std::string, std::string, std::less<>>;

// --- The columns of a table. Versions differ in their columns, so titles identify them.

enum class LogColumn : std::uint8_t {
  kBlock,
  kBatch,
  kRate,
  kTotalRate,
  kPrep,
  kPrepP99,
  kPost,
  kPostP99,
  kTx,
  kTxP99,
  kIgnored
};
using Title = ColumnTitle<LogColumn>;
constexpr std::string_view kFirstTitle = "Block Size (B)";
constexpr std::array kTitles{
    Title{kFirstTitle, LogColumn::kBlock},
    Title{"Batch Size", LogColumn::kBatch},
    Title{"B/W (GB/Sec)", LogColumn::kRate},
    Title{"Aggregate B/W (GB/Sec)", LogColumn::kTotalRate},
    Title{"Avg Prep (us)", LogColumn::kPrep},
    Title{"P99 Prep (us)", LogColumn::kPrepP99},
    Title{"Avg Post (us)", LogColumn::kPost},
    Title{"P99 Post (us)", LogColumn::kPostP99},
    Title{"Avg Tx (us)", LogColumn::kTx},
    Title{"P99 Tx (us)", LogColumn::kTxP99},
    Title{"Avg Lat. (us)", LogColumn::kIgnored},     // inverse throughput
    Title{"Network Util (%)", LogColumn::kIgnored},  // relative to 50 GB/s, whatever the network is
    Title{"B/W (MiB/Sec)", LogColumn::kIgnored},
    Title{"B/W (GiB/Sec)", LogColumn::kIgnored},
};
using Columns = std::vector<LogColumn>;

Columns columnsOf(std::string_view head) {
  return columnsIn(head, std::span<const Title>(kTitles));
}

bool isTable(const Columns& columns) {
  const auto has = [&](LogColumn c) {
    return std::find(columns.begin(), columns.end(), c) != columns.end();
  };
  return has(LogColumn::kBlock) && has(LogColumn::kBatch) &&
         (has(LogColumn::kRate) || has(LogColumn::kTotalRate));
}

// --- One line of a table.

using Figures = FigureMap<LogColumn>;

// True if the last figure may be truncated. Complete times have digits after the decimal point.
bool endsInCutFigure(std::string_view line) {
  const auto words = base::wordsOf(line);
  if (words.empty() || !figureIn(words.back())) return false;
  const auto point = words.back().find('.');
  return point == std::string_view::npos || point + 1 == words.back().size();
}

std::optional<MeanP99> meanP99(const Figures& f, LogColumn mean, LogColumn p99) {
  const auto m = figure(f, mean), p = figure(f, p99);
  return m && p ? std::optional(MeanP99{*m, *p}) : std::nullopt;
}

// --- Values of the banner.

std::string flag(const Flags& flags, std::string_view name, std::string_view fallback) {
  const auto at = flags.find(name);
  return std::string(at == flags.end() || at->second.empty() ? fallback : at->second);
}

std::uint64_t count(const Flags& flags, std::string_view name, std::uint64_t fallback) {
  constexpr double kMost = 1e15;
  const auto at = flags.find(name);
  return at == flags.end() ? fallback : wholeOf(figureIn(at->second), kMost).value_or(fallback);
}

std::uint32_t few(const Flags& flags, std::string_view name) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count(flags, name, 1), 1U << 20U));
}

std::string memoryOf(const Flags& flags) {
  const std::string from = flag(flags, "initiator_seg_type", "DRAM");
  const std::string to = flag(flags, "target_seg_type", "DRAM");
  return from == to ? from : from + "/" + to;
}

std::optional<Row> rowOf(const Figures& figures, const Flags& flags) {
  constexpr double kMostBlock = 1e15, kMostBatch = 4e9;
  const auto block = wholeOf(figure(figures, LogColumn::kBlock), kMostBlock);
  const auto batch = wholeOf(figure(figures, LogColumn::kBatch), kMostBatch);
  const auto total = figure(figures, LogColumn::kTotalRate);
  const auto rate = total ? total : figure(figures, LogColumn::kRate);
  if (!block || !batch || !rate) return std::nullopt;
  Row row{.backend = flag(flags, "backend", "unknown"),
          .op = flag(flags, "op_type", "WRITE") == "READ" ? OpKind::kRead : OpKind::kWrite,
          .scheme = flag(flags, "scheme", "pairwise"),
          .block_size = *block,
          .batch_size = static_cast<std::uint32_t>(*batch),
          .threads = few(flags, "num_threads"),
          .pipeline_depth = few(flags, "pipeline_depth"),
          .initiators = few(flags, "num_initiator_dev"),
          .targets = few(flags, "num_target_dev"),
          .memory = memoryOf(flags),
          .gb_per_s = rate,
          .prep_us = meanP99(figures, LogColumn::kPrep, LogColumn::kPrepP99),
          .post_us = meanP99(figures, LogColumn::kPost, LogColumn::kPostP99),
          .tx_us = meanP99(figures, LogColumn::kTx, LogColumn::kTxP99),
          .verdict = Verdict::kUnproven,
          .why = "nixlbench does not check the path of the bytes"};
  row.iterations = count(flags, "num_iter", 0) * row.initiators;
  if (row.block_size > kLargeBlock) row.iterations /= count(flags, "large_blk_iter_ftr", 16);
  return row;
}

// Removes a verdict from the end of the line and returns it. `viaduct nixlbench` ends the lines of
// bad rows with a verdict.
std::optional<Verdict> takeVerdict(std::string_view& line) {
  const auto words = base::wordsOf(line);
  for (const auto& [name, verdict] : kVerdicts)
    if (!words.empty() && !isGood(verdict) && words.back() == loudName(verdict)) {
      line = line.substr(0, line.rfind(words.back()));
      return verdict;
    }
  return std::nullopt;
}

// --- Runs.

// The lines read so far from one source, such as a pod.
struct Run {
  Flags flags;
  Columns columns;
  std::string started;
  std::vector<Row> rows;
};

std::uint64_t steps(std::uint64_t from, std::uint64_t to) {
  std::uint64_t out = 0;
  for (; from != 0 && from <= to && out < 64; from *= 2) ++out;
  return out;
}

std::string endOf(const Run& run) {
  if (run.flags.find("max_block_size") == run.flags.end()) return "complete";
  const std::uint64_t expected =
      steps(count(run.flags, "start_block_size", 4096), count(run.flags, "max_block_size", 1)) *
      steps(count(run.flags, "start_batch_size", 1), count(run.flags, "max_batch_size", 1));
  if (run.rows.size() >= expected) return "complete";
  return fmt::format("the log ends after {} of {} rows", run.rows.size(), expected);
}

class LogReader final : public TableReader<Run> {
 public:
  explicit LogReader(const std::string& file) : TableReader("read nixlbench output", file) {}

 private:
  void line(const std::string& text) override {
    if (const auto at = text.find(kFirstTitle); at != std::string::npos) return head(text, at);
    if (const auto setting = settingIn(text)) return banner(sourceOf(text), *setting);
    if (Run* run = tableOf(text)) row(*run, text);
  }

  void head(const std::string& text, std::size_t at) {
    Columns columns = columnsOf(std::string_view(text).substr(at));
    if (!isTable(columns)) return;
    Run& run = open_[sourceOf(text)];
    // A second table without a second banner is another run with the same settings.
    finish(run);
    run.columns = std::move(columns);
    run.started = timeIn(text, at);
  }

  void banner(const std::string& source, const LogSetting& setting) {
    Run& run = open_[source];
    if (!run.columns.empty()) {
      finish(run);
      run = {};
    }
    if (!isSecret(setting.name)) run.flags[setting.name] = setting.value;
  }

  // Returns the run whose table may contain the line: the run of the line's source, or the only run
  // with a table.
  Run* tableOf(const std::string& text) {
    const auto own = open_.find(sourceOf(text));
    if (own != open_.end() && !own->second.columns.empty()) return &own->second;
    Run* only = nullptr;
    for (auto& [source, run] : open_) {
      if (run.columns.empty()) continue;
      if (only != nullptr) return nullptr;
      only = &run;
    }
    return only;
  }

  void row(Run& run, const std::string& text) {
    const auto parse = [](std::string_view word, LogColumn) { return figureIn(word); };
    std::string_view line = text;
    const auto verdict = takeVerdict(line);
    const auto figures = figuresIn(line, run.columns, parse);
    auto found = figures ? rowOf(*figures, run.flags) : std::nullopt;
    if (!found) return;
    if (verdict) {
      found->verdict = *verdict;
      found->why = "the output says so";
    }
    add(run, *std::move(found));
  }

  Report reportOf(Run& run) const override {
    Report out{.version = "nixlbench", .started = run.started, .end = endOf(run)};
    for (const auto& [name, value] : run.flags) out.settings.push_back({name, value});
    out.conclusion = {
        "Read from nixlbench's output. Its \"Avg Lat.\" is the inverse of its rate and not a "
        "latency, so it is left out. tx is the time from the return of the post to the end."};
    return out;
  }
};

}  // namespace

bool isNixlbenchLog(std::string_view text) {
  for (auto at = text.find(kFirstTitle); at != std::string_view::npos;
       at = text.find(kFirstTitle, at + 1)) {
    const auto end = std::min(text.find('\n', at), text.size());
    if (isTable(columnsOf(text.substr(at, end - at)))) return true;
  }
  return false;
}

Result<std::vector<Report>> reportsFromNixlbenchLog(std::string_view text,
                                                    const std::string& name) {
  // The last line may be cut off.
  const auto last = text.rfind('\n') + 1;
  if (endsInCutFigure(plainLine(text.substr(last)))) text = text.substr(0, last);
  return LogReader(name).read(text);
}

}  // namespace viaduct::measure
