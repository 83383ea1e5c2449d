#include "measure/result/best_rate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "base/sizes.h"
#include "measure/result/statistics.h"

namespace viaduct::measure {
namespace {

// "VRAM 0/VRAM 1" becomes "VRAM", as raw tools write it.
std::string withoutGpus(const std::string& memory) {
  std::vector<std::string> kinds;
  for (std::string_view rest = memory; !rest.empty();) {
    const std::string_view side = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(side.size() + 1, rest.size()));
    const std::string kind(side.substr(0, side.find(' ')));
    if (kinds.empty() || kinds.back() != kind) kinds.push_back(kind);
  }
  return fmt::format("{}", fmt::join(kinds, "/"));
}

// Returns the median of one figure over the rows that have it.
template <class Figure>
std::optional<double> medianOf(const std::vector<const Row*>& rows, Figure figure) {
  std::vector<double> values;
  for (const Row* row : rows)
    if (const std::optional<double> value = figure(*row)) values.push_back(*value);
  return middle(values);
}

// If `with_backend` is false, leaves out the list of a pipeline's places. The stages alone tell its
// rows apart.
std::string kindOf(const Row& row, bool with_backend) {
  const auto* const stages = row.as<PipelineRow>();
  return with_backend || stages == nullptr ? kindText(row) : stagesText(*stages);
}

bool serves(const std::monostate& /*blocks*/) { return false; }
bool serves(const Operation& /*a pattern*/) { return false; }
bool serves(const KvWorkload& kv) { return kv.bulk; }
bool serves(const PipelineRow& row) { return row.run != StagesRun::kWhole && row.rows != 1; }
bool serves(const SwapRow& row) { return row.way == kOneCallABlock; }
bool serves(const MatrixRow& row) { return row.figure == "latency"; }

}  // namespace

std::string identityOf(const Row& row, bool with_backend) {
  const std::string memory = with_backend   ? row.memory
                             : usesGpu(row) ? withoutGpus(row.memory)
                                            : "";
  const std::string kind = kindOf(row, with_backend);
  return fmt::format("{} {} {}, {} x {}, {} to {}, {} threads, depth {}{}{}{}",
                     with_backend ? row.backend : "", opKindName(row.op), row.scheme,
                     row.batch_size, base::showSize(row.block_size), row.initiators, row.targets,
                     row.threads, row.pipeline_depth, row.bidirectional ? ", both ways" : "",
                     memory.empty() ? "" : ", ", memory) +
         (row.rate ? fmt::format(", {} a second", row.rate->asked_per_s) : "") +
         (row.background ? ", beside background of " + base::showSize(row.background->size) : "") +
         (kind.empty() ? "" : ", " + kind);
}

Row oneOf(const std::vector<const Row*>& repeats) {
  std::vector<const Row*> rows;
  std::ranges::copy_if(repeats, std::back_inserter(rows),
                       [](const Row* row) { return isGood(row->verdict); });
  if (rows.empty()) rows = repeats;
  std::ranges::stable_sort(rows, {}, [](const Row* row) { return row->gb_per_s.value_or(0); });
  Row out = *rows[rows.size() / 2];
  out.gb_per_s = medianOf(rows, [](const Row& row) { return row.gb_per_s; });
  if (out.ceiling && out.ceiling->gb_per_s > 0 && rows.size() > 1)
    out.ceiling->percent = out.gb_per_s.value_or(0) / out.ceiling->gb_per_s * 100;
  if (!out.latency_us) return out;
  for (double Latency::* which : {&Latency::p50, &Latency::p99})
    (*out.latency_us).*which =
        medianOf(rows, [&](const Row& row) {
          return row.latency_us ? std::optional((*row.latency_us).*which) : std::nullopt;
        }).value_or(0);
  return out;
}

std::vector<Row> withoutRepeats(std::span<const Row> rows) {
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<const Row*>> groups;
  for (const Row& row : rows) {
    const auto [at, fresh] = places.try_emplace(identityOf(row), groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(&row);
  }
  std::vector<Row> out;
  out.reserve(groups.size());
  for (const auto& group : groups) out.push_back(oneOf(group));
  return out;
}

bool standsForItself(const Row& row) {
  return std::visit([](const auto& kind) { return !serves(kind); }, row.kind);
}

std::optional<Row> bestRow(std::span<const Row> rows) {
  std::optional<Row> out;
  for (Row& row : withoutRepeats(rows)) {
    const double rate = row.gb_per_s.value_or(0);
    if (!isGood(row.verdict) || !standsForItself(row) || rate <= 0) continue;
    if (!out || rate > *out->gb_per_s) out = std::move(row);
  }
  return out;
}

}  // namespace viaduct::measure
