#include "measure/report/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "measure/result/best_rate.h"

namespace viaduct::measure {
namespace {

// A series is told apart by kParts properties, in the order of its label. The other two numbers are
// indices of properties.
constexpr std::size_t kParts = 10, kFile = 1, kMembers = 5;
using Parts = std::array<std::string, kParts>;

std::string schemeOf(const Row& row) {
  const auto* const kv = row.as<KvWorkload>();
  // The number of tokens is left out, because it decides the row's block size.
  if (kv != nullptr)
    return fmt::format("{}, {}, block {}, TP {} to {}", row.scheme, kv->model, kv->source_block,
                       kv->source_tp, kv->destination_tp);
  if (const auto* const stages = row.as<PipelineRow>()) return stagesText(*stages);
  const std::string kind = kindText(row);
  return row.scheme + (kind.empty() ? "" : ", " + kind);
}

Parts partsOf(const Source& source, const Row& row, bool with_batch) {
  return {row.backend,
          source.name,
          opKindName(row.op),
          schemeOf(row),
          row.as<PipelineRow>() == nullptr ? "" : row.as<PipelineRow>()->pipeline,
          fmt::format("{}\u2192{}{}", row.initiators, row.targets,
                      row.bidirectional ? " both ways" : ""),
          row.memory,
          row.threads == 1 ? "1 thread" : fmt::format("{} threads", row.threads),
          fmt::format("depth {}", row.pipeline_depth) +
              (row.rate ? fmt::format(", {:g}/s asked", row.rate->asked_per_s) : "") +
              (row.background ? ", beside background" : ""),
          with_batch ? fmt::format("batch {}", row.batch_size) : std::string{}};
}

struct SeriesRows {
  Parts parts;
  std::size_t source = 0;
  std::vector<const Row*> rows;
};

// True if one block size has several batches. Otherwise each block size has its own batch, and
// the batch does not tell series apart.
bool hasSeveralBatches(const std::vector<const Row*>& rows) {
  std::map<std::uint64_t, std::uint32_t> seen;
  return std::any_of(rows.begin(), rows.end(), [&](const Row* row) {
    return seen.try_emplace(chosenSize(*row), row->batch_size).first->second != row->batch_size;
  });
}

void addRows(std::size_t index, const Source& source, const std::vector<const Row*>& rows,
             bool with_batch, std::vector<SeriesRows>& to) {
  std::map<Parts, std::size_t> places;
  for (const Row* row : rows) {
    const Parts parts = partsOf(source, *row, with_batch);
    const auto [at, fresh] = places.try_emplace(parts, to.size());
    if (fresh) to.push_back({parts, index, {}});
    to[at->second].rows.push_back(row);
  }
}

std::vector<SeriesRows> rowsOfSeries(const std::vector<Source>& sources) {
  std::vector<SeriesRows> all;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::vector<const Row*> rows;
    for (const Row& row : sources[i].report.rows)
      if (chosenSize(row) != 0) rows.push_back(&row);
    std::vector<SeriesRows> coarse;
    addRows(i, sources[i], rows, false, coarse);
    for (const SeriesRows& one : coarse)
      addRows(i, sources[i], one.rows, hasSeveralBatches(one.rows), all);
  }
  return all;
}

std::string labelOf(const Parts& parts, const std::array<bool, kParts>& shown) {
  std::string out = parts[0].empty() ? "unknown" : parts[0];
  for (std::size_t i = 1; i < kParts; ++i)
    if (shown[i] && !parts[i].empty()) out += ", " + parts[i];
  return out;
}

std::string workOf(const Parts& parts) {
  std::array<bool, kParts> all{};
  for (std::size_t i = 0; i < kParts; ++i) all[i] = i != kFile && i != kMembers;
  return labelOf(parts, all);
}

// Makes one row of all rows with the same block size.
std::vector<Row> bySize(const std::vector<const Row*>& rows) {
  std::map<std::uint64_t, std::vector<const Row*>> sizes;
  for (const Row* row : rows) sizes[chosenSize(*row)].push_back(row);
  std::vector<Row> out;
  out.reserve(sizes.size());
  for (const auto& [size, repeats] : sizes) out.push_back(oneOf(repeats));
  return out;
}

std::string baseName(const std::string& file) {
  const auto slash = file.find_last_of('/');
  return slash == std::string::npos || slash + 1 == file.size() ? file : file.substr(slash + 1);
}

}  // namespace

std::vector<std::string> namesOf(const std::vector<std::string>& files) {
  std::map<std::string, int> uses;
  for (const std::string& file : files) ++uses[baseName(file)];
  std::vector<std::string> out;
  for (const std::string& file : files) {
    const std::string base = baseName(file);
    out.push_back(uses[base] == 1 ? base : file);
  }
  return out;
}

std::vector<Source> sourcesOf(const std::vector<std::string>& files,
                              std::vector<std::vector<Report>> reports) {
  const std::vector<std::string> names = namesOf(files);
  std::vector<Source> out;
  for (std::size_t i = 0; i < files.size(); ++i)
    for (std::size_t k = 0; k < reports[i].size(); ++k)
      out.push_back({reports[i].size() == 1 ? names[i] : fmt::format("{} #{}", names[i], k + 1),
                     std::move(reports[i][k])});
  return out;
}

std::vector<Series> seriesOf(const std::vector<Source>& sources) {
  const std::vector<SeriesRows> all = rowsOfSeries(sources);
  std::array<std::set<std::string>, kParts> values;
  for (const SeriesRows& one : all)
    for (std::size_t i = 0; i < kParts; ++i) values[i].insert(one.parts[i]);
  std::array<bool, kParts> shown{};
  for (std::size_t i = 0; i < kParts; ++i) shown[i] = values[i].size() > 1;
  std::vector<Series> out;
  out.reserve(all.size());
  for (const SeriesRows& one : all)
    out.push_back({labelOf(one.parts, shown), workOf(one.parts), one.source, bySize(one.rows)});
  return out;
}

std::vector<std::uint64_t> sizesOf(const std::vector<Series>& series) {
  std::set<std::uint64_t> out;
  for (const Series& s : series)
    for (const Row& row : s.rows) out.insert(chosenSize(row));
  return {out.begin(), out.end()};
}

const Row* rowAt(const Series& series, std::uint64_t size) {
  const auto at = std::find_if(series.rows.begin(), series.rows.end(),
                               [&](const Row& row) { return chosenSize(row) == size; });
  return at == series.rows.end() ? nullptr : &*at;
}

}  // namespace viaduct::measure
