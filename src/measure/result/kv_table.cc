#include "measure/result/kv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/sizes.h"
#include "base/text.h"
#include "measure/result/statistics.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr double kMilli = 1e-3;

std::string blocksOf(const KvWorkload& kv) {
  if (kv.source_block == 0) return "model";
  if (kv.source_block == kv.destination_block) return fmt::to_string(kv.source_block);
  return fmt::format("{}>{}", kv.source_block, kv.destination_block);
}

// The paged or the bulk rows of one point: one combination of model, tokens, blocks and batch.
class Trials {
 public:
  Trials(const std::vector<Row>& rows, bool bulk) {
    for (const Row& row : rows)
      if (row.as<KvWorkload>()->bulk == bulk) rows_.push_back(&row);
  }
  // middle(), least() and most() return a figure's median, least and highest value over the trials.
  template <class Figure>
  std::optional<double> middle(Figure figure) const {
    return over(figure, [](std::vector<double> all) { return median(std::move(all)); });
  }
  template <class Figure>
  std::optional<double> least(Figure figure) const {
    return over(figure, [](const std::vector<double>& all) { return std::ranges::min(all); });
  }
  template <class Figure>
  std::optional<double> most(Figure figure) const {
    return over(figure, [](const std::vector<double>& all) { return std::ranges::max(all); });
  }
  const Row* first() const { return rows_.empty() ? nullptr : rows_.front(); }

 private:
  template <class Figure, class Pick>
  std::optional<double> over(Figure figure, Pick pick) const {
    std::vector<double> all;
    for (const Row* row : rows_)
      if (const std::optional<double> value = figure(*row)) all.push_back(*value);
    if (all.empty()) return std::nullopt;
    return pick(std::move(all));
  }
  std::vector<const Row*> rows_;
};

template <class Of>
auto milliseconds(Of of) {
  return [of](const Row& row) -> std::optional<double> {
    if (!row.latency_us) return std::nullopt;
    return std::optional<double>(of(*row.latency_us)).value_or(0) * kMilli;
  };
}

std::string percentOf(std::optional<double> part) {
  return part ? fmt::format("{:.1f}%", *part * 100) : "-";
}

// Rates are in GB/s, from the bytes of a burst and its median latency.
constexpr std::array kBurstColumns{base::figure("tokens", 7),      base::figure("block", 7),
                                   base::figure("batch", 5),       base::figure("GB/s at p50", 7),
                                   base::figure("bulk at p50", 7), base::figure("share", 6),
                                   base::figure("p50 ms", 8),      base::figure("p95 ms", 8),
                                   base::figure("min ms", 8),      base::figure("max ms", 8)};

std::string headingOf(const Row& row) {
  const KvWorkload& kv = *row.as<KvWorkload>();
  std::string out = fmt::format(
      "{} {}, {}, TP {}, {}, {}", row.backend, row.op == OpKind::kRead ? "pull" : "push", kv.model,
      kv.source_tp == kv.destination_tp ? fmt::to_string(kv.source_tp)
                                        : fmt::format("{} to {}", kv.source_tp, kv.destination_tp),
      kv.order, kv.arrangement);
  if (usesGpu(row)) out += ", " + row.memory;
  return out;
}

std::vector<std::string> cellsOf(const Trials& paged, const Trials& bulk) {
  const Row& row = *paged.first();
  const KvWorkload& kv = *row.as<KvWorkload>();
  return base::cells(
      kv.tokens, blocksOf(kv), row.batch_size, digits(paged.middle(rateAtP50)),
      digits(bulk.middle(rateAtP50)),
      percentOf(paged.middle([](const Row& one) { return one.as<KvWorkload>()->of_bulk; })),
      digits(paged.middle(milliseconds([](const Latency& l) { return l.p50; }))),
      digits(paged.middle(milliseconds([](const Latency& l) { return l.p95; }))),
      digits(paged.least(milliseconds([](const Latency& l) { return l.min; }))),
      digits(paged.most(milliseconds([](const Latency& l) { return l.max; }))));
}

// Says how a burst was planned, posted and checked.
std::string wayOf(const std::vector<Row>& rows, const Trials& paged) {
  std::uint64_t words = 0;
  for (const Row& one : rows) words += one.as<KvWorkload>()->checked_words;
  const auto mean_of = [](std::optional<MeanP99> Row::* which) {
    return [which](const Row& one) {
      return one.*which ? std::optional((one.*which)->mean) : std::nullopt;
    };
  };
  const Row& row = *paged.first();
  const KvWorkload& kv = *row.as<KvWorkload>();
  return note(fmt::format(
      "{} in {} pages, posted as {}; planned in {} us a request, "
      "posted in {} us; {}, {} words checked",
      base::roundedSize(row.block_size * row.batch_size), kv.descriptors, counted(kv.runs, "run"),
      digits(paged.middle(mean_of(&Row::prep_us))), digits(paged.middle(mean_of(&Row::post_us))),
      counted(kv.table_sets, "table set"), words));
}

// The verdicts and remarks of a point's rows.
std::string notesOf(const std::vector<Row>& rows) {
  std::string out, remark;
  for (const Row& one : rows) {
    const char* const kind = one.as<KvWorkload>()->bulk ? "bulk " : "";
    if (one.verdict != Verdict::kOk)
      out += note(fmt::format("^ {}{}: {}", kind,
                              isGood(one.verdict) ? "unproven" : loudName(one.verdict), one.why));
    if (!one.remark.empty() && one.remark != remark)
      out += note("^ " + std::string(kind) + one.remark);
    remark = one.remark;
  }
  return out;
}

// Returns the line of a point. It has no cells if the point has no paged row.
base::TextRow lineOf(const std::vector<Row>& rows) {
  const Trials paged(rows, false), bulk(rows, true);
  if (paged.first() == nullptr) return {.after = notesOf(rows)};
  return {.cells = cellsOf(paged, bulk), .after = wayOf(rows, paged) + notesOf(rows)};
}

std::string replayHeading(const Row& row) {
  const KvWorkload& kv = *row.as<KvWorkload>();
  return fmt::format("{} {}, {}, block {}, TP {}, {}, {}, pools of {}", row.backend,
                     row.op == OpKind::kRead ? "pull" : "push", kv.model, blocksOf(kv),
                     kv.source_tp, kv.order, kv.arrangement, base::roundedSize(kv.pool_bytes));
}

// Each line of a replay has a name and a text.
std::vector<std::pair<std::string, std::string>> replayLines(const Row& row) {
  const KvWorkload& kv = *row.as<KvWorkload>();
  const KvReplayed& r = *kv.replay;
  const auto ms = [](const Latency& l) {
    return fmt::format("p50 {} ms, p95 {} ms, p99 {} ms, max {} ms", digits(l.p50 * kMilli),
                       digits(l.p95 ? std::optional(*l.p95 * kMilli) : std::nullopt),
                       digits(l.p99 * kMilli), digits(l.max * kMilli));
  };
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("trace",
                   r.format.empty() ? r.trace : fmt::format("{} ({} format)", r.trace, r.format));
  out.emplace_back(
      "requests",
      fmt::format("{} in {} s ({} a second asked), {} left out", r.requests, digits(row.seconds),
                  digits(row.rate ? std::optional(row.rate->asked_per_s) : std::nullopt),
                  r.left_out));
  out.emplace_back("hits", r.hash_ids == 0 ? "none: the trace has no prefix ids"
                                           : fmt::format("{} of {} hash ids: {:.1f} %", r.hit_ids,
                                                         r.hash_ids, r.hit_rate * 100));
  if (row.latency_us) out.emplace_back("transfer", ms(*row.latency_us));
  out.emplace_back(
      "moved", fmt::format("{} GB/s; {} words checked", digits(row.gb_per_s), kv.checked_words));
  if (r.ttft_us)
    out.emplace_back("TTFT", ms(*r.ttft_us) + fmt::format(" at {:g} tokens/s of prefill",
                                                          r.prefill_tokens_per_s.value_or(0)));
  if (r.of_ttft)
    out.emplace_back("share",
                     fmt::format("transfers are {:.1f} % of TTFT in the mean, {:.1f} % at p99",
                                 *r.of_ttft * 100, r.of_ttft_p99.value_or(0) * 100));
  return out;
}

void showReplay(const Row& row, TableSink& sink) {
  constexpr std::array kReplay{base::words("replay"), base::words("result")};
  std::vector<base::TextRow> lines;
  for (const auto& [name, text] : replayLines(row)) lines.push_back({.cells = {name, text}});
  lines.back().after = notesOf({row});
  sink.table(fmt::format("{}: {}", row.as<KvWorkload>()->replay->trace, replayHeading(row)),
             kReplay, lines);
}

// Groups rows by a text, in the order of the first of each group.
template <class Text>
std::vector<std::vector<Row>> grouped(std::span<const Row> rows, Text text) {
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<Row>> out;
  for (const Row& row : rows) {
    const auto [at, fresh] = places.try_emplace(text(row), out.size());
    if (fresh) out.emplace_back();
    out[at->second].push_back(row);
  }
  return out;
}

}  // namespace

void showKv(std::span<const Row> rows, TableSink& sink) {
  std::vector<Row> bursts;
  for (const Row& row : rows)
    if (row.as<KvWorkload>()->replay)
      showReplay(row, sink);
    else
      bursts.push_back(row);
  const auto point = [](const Row& row) {
    return fmt::format("{} {}", kindText(row), row.batch_size);
  };
  for (const std::vector<Row>& alike : grouped(bursts, headingOf)) {
    std::vector<base::TextRow> lines;
    for (const std::vector<Row>& one : grouped(alike, point)) lines.push_back(lineOf(one));
    sink.table(headingOf(alike.front()), kBurstColumns, lines);
  }
}

KvTable::KvTable(std::size_t width) : points_(kBurstColumns, width) {}

std::string KvTable::heading(const Row& row) {
  std::string what = headingOf(row);
  if (const std::string path = pathWords(row); !path.empty()) what += ": " + path;
  if (what == what_) return {};
  const std::string out = what_.empty() ? "" : "\n";
  what_ = std::move(what);
  return out + wrapped(what_, 0) + points_.head();
}

std::string KvTable::replayed(const Row& row) {
  std::string out = what_.empty() ? "" : "\n";
  what_ = replayHeading(row);
  if (const std::string path = pathWords(row); !path.empty()) what_ += ": " + path;
  out += wrapped(what_, 0);
  for (const auto& [name, text] : replayLines(row))
    out += base::paragraph(fmt::format("  {:<9} ", name), text);
  return out + notesOf({row});
}

std::string KvTable::add(const Row& row) {
  const KvWorkload& kv = *row.as<KvWorkload>();
  if (kv.replay) return replayed(row);
  rows_.push_back(row);
  const bool last = rows_.size() == std::size_t{2} * kv.trials || row.interrupted;
  if (!last) return {};
  addSharesOfBulk(rows_);
  base::TextRow line = lineOf(rows_);
  const std::string out = heading(rows_.front()) +
                          (line.cells.empty() ? "" : points_.row(std::move(line.cells))) +
                          line.after;
  rows_.clear();
  return out;
}

}  // namespace viaduct::measure
