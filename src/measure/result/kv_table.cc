#include "measure/result/kv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

// The paged or the bulk rows of a point.
class Trials {
 public:
  Trials(const std::vector<Row>& rows, bool bulk) {
    for (const Row& row : rows)
      if (row.as<KvWorkload>()->bulk == bulk) rows_.push_back(&row);
  }
  // Returns the median over the trials, or their least or highest value.
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

}  // namespace

KvTable::KvTable(std::size_t width)
    : points_(
          std::array{base::figure("tokens", 7), base::figure("block", 7), base::figure("batch", 5),
                     base::figure("GB/s", 7), base::figure("bulk", 7), base::figure("share", 6),
                     base::figure("p50 ms", 8), base::figure("p95 ms", 8),
                     base::figure("min ms", 8), base::figure("max ms", 8)},
          width) {}

std::string KvTable::heading(const Row& row) {
  const KvWorkload& kv = *row.as<KvWorkload>();
  std::string what = fmt::format(
      "{} {}, {}, TP {}, {}, {}", row.backend, row.op == OpKind::kRead ? "pull" : "push", kv.model,
      kv.source_tp == kv.destination_tp ? fmt::to_string(kv.source_tp)
                                        : fmt::format("{} to {}", kv.source_tp, kv.destination_tp),
      kv.order, kv.arrangement);
  if (usesGpu(row)) what += ", " + row.memory;
  if (const std::string path = pathWords(row); !path.empty()) what += ": " + path;
  if (what == what_) return {};
  const std::string out = what_.empty() ? "" : "\n";
  what_ = std::move(what);
  return out + wrapped(what_, 0) + points_.head();
}

std::string KvTable::pointText() {
  const Trials paged(rows_, false), bulk(rows_, true);
  if (paged.first() == nullptr) return {};
  const Row& row = *paged.first();
  std::uint64_t words = 0;
  for (const Row& one : rows_) words += one.as<KvWorkload>()->checked_words;
  const auto meanOf = [](std::optional<MeanP99> Row::* which) {
    return [which](const Row& one) {
      return one.*which ? std::optional((one.*which)->mean) : std::nullopt;
    };
  };
  const KvWorkload& kv = *row.as<KvWorkload>();
  const std::string line = points_.row(base::cells(
      kv.tokens, blocksOf(kv), row.batch_size, digits(paged.middle(rateAtP50)),
      digits(bulk.middle(rateAtP50)),
      percentOf(paged.middle([](const Row& one) { return one.as<KvWorkload>()->of_bulk; })),
      digits(paged.middle(milliseconds([](const Latency& l) { return l.p50; }))),
      digits(paged.middle(milliseconds([](const Latency& l) { return l.p95; }))),
      digits(paged.least(milliseconds([](const Latency& l) { return l.min; }))),
      digits(paged.most(milliseconds([](const Latency& l) { return l.max; })))));
  return line +
         note(fmt::format("{} in {} pages, posted as {}; planned in {} us a request, "
                          "posted in {} us; {}, {} words checked",
                          base::showSize(row.block_size * row.batch_size), kv.descriptors,
                          counted(kv.runs, "run"), digits(paged.middle(meanOf(&Row::prep_us))),
                          digits(paged.middle(meanOf(&Row::post_us))),
                          counted(kv.table_sets, "table set"), words));
}

std::string KvTable::replayed(const Row& row) {
  const KvWorkload& kv = *row.as<KvWorkload>();
  const KvReplayed& r = *kv.replay;
  std::string out = what_.empty() ? "" : "\n";
  what_ = fmt::format("{} {}, {}, block {}, TP {}, {}, {}, pools of {}", row.backend,
                      row.op == OpKind::kRead ? "pull" : "push", kv.model, blocksOf(kv),
                      kv.source_tp, kv.order, kv.arrangement, base::showSize(kv.pool_bytes));
  if (const std::string path = pathWords(row); !path.empty()) what_ += ": " + path;
  out += wrapped(what_, 0);
  const auto ms = [](const Latency& l) {
    return fmt::format("p50 {} ms, p95 {} ms, p99 {} ms, max {} ms", digits(l.p50 * kMilli),
                       digits(l.p95 ? std::optional(*l.p95 * kMilli) : std::nullopt),
                       digits(l.p99 * kMilli), digits(l.max * kMilli));
  };
  const auto line = [&](const char* name, const std::string& text) {
    out += base::paragraph(fmt::format("  {:<9} ", name), text);
  };
  line("trace", r.format.empty() ? r.trace : fmt::format("{} ({} format)", r.trace, r.format));
  line("requests",
       fmt::format("{} in {} s ({} a second asked), {} left out", r.requests, digits(row.seconds),
                   digits(row.rate ? std::optional(row.rate->asked_per_s) : std::nullopt),
                   r.left_out));
  line("hits", r.hash_ids == 0 ? "none: the trace has no prefix ids"
                               : fmt::format("{} of {} hash ids: {:.1f} %", r.hit_ids, r.hash_ids,
                                             r.hit_rate * 100));
  if (row.latency_us) line("transfer", ms(*row.latency_us));
  line("moved", fmt::format("{} GB/s; {} words checked", digits(row.gb_per_s), kv.checked_words));
  if (r.ttft_us)
    line("TTFT", ms(*r.ttft_us) + fmt::format(" at {:g} tokens/s of prefill",
                                              r.prefill_tokens_per_s.value_or(0)));
  if (r.of_ttft)
    line("share", fmt::format("transfers are {:.1f} % of TTFT in the mean, {:.1f} % at p99",
                              *r.of_ttft * 100, r.of_ttft_p99.value_or(0) * 100));
  if (row.verdict != Verdict::kOk)
    out += note(
        fmt::format("^ {}: {}", isGood(row.verdict) ? "unproven" : loudName(row.verdict), row.why));
  if (!row.remark.empty()) out += note("^ " + row.remark);
  return out;
}

std::string KvTable::add(const Row& row) {
  const KvWorkload& kv = *row.as<KvWorkload>();
  if (kv.replay) return replayed(row);
  rows_.push_back(row);
  const bool last = rows_.size() == std::size_t{2} * kv.trials || row.interrupted;
  if (!last) return {};
  addSharesOfBulk(rows_);
  std::string out = heading(rows_.front()) + pointText();
  std::string remark;
  for (const Row& one : rows_) {
    const char* const kind = one.as<KvWorkload>()->bulk ? "bulk " : "";
    if (one.verdict != Verdict::kOk)
      out += note(fmt::format("^ {}{}: {}", kind,
                              isGood(one.verdict) ? "unproven" : loudName(one.verdict), one.why));
    if (!one.remark.empty() && one.remark != remark)
      out += note("^ " + std::string(kind) + one.remark);
    remark = one.remark;
  }
  rows_.clear();
  return out;
}

}  // namespace viaduct::measure
