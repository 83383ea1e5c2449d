#include <fmt/format.h>

#include <algorithm>

#include "base/lists.h"
#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/matrix/matrix.h"
#include "measure/result/report_json.h"
#include "measure/result/row_json.h"
#include "measure/result/text.h"

namespace viaduct::measure::matrix {
namespace {

constexpr FormatName kMatrixFormat{
    .front = "viaduct-gpu-matrix/", .version = 1, .writer = "viaduct bench --gpu-matrix"};

// Marks each way by a letter, in the order of their first use.
class Legend {
 public:
  std::string markOf(const std::string& way) {
    auto at = std::ranges::find(ways_, way);
    if (at == ways_.end()) at = ways_.insert(at, way);
    const auto number = static_cast<std::size_t>(at - ways_.begin());
    constexpr std::size_t kLetters = 26;
    std::string out(1, static_cast<char>('a' + number % kLetters));
    return number < kLetters ? out : out + fmt::to_string(number / kLetters);
  }
  std::string text() {
    std::string out;
    for (const std::string& way : ways_) out += fmt::format("  {}  {}\n", markOf(way), way);
    return out;
  }

 private:
  std::vector<std::string> ways_;
};

std::vector<Place> placesOf(const GpuMatrix& matrix) {
  std::vector<Place> out{{}};
  for (const SeenGpu& gpu : matrix.gpus) out.emplace_back(gpu.number);
  return out;
}

const Cell* cellAt(const GpuMatrix& matrix, std::uint32_t processes, const Place& from,
                   const Place& to) {
  return base::firstOf(matrix.cells, [&](const Cell& one) {
    return one.processes == processes && one.from == from && one.to == to;
  });
}

const char* processesName(std::uint32_t count) {
  return count == 1 ? "one process" : "two processes";
}

enum class Figure : std::uint8_t { kRate, kLatency };

std::string figureOf(const Cell* cell, Figure which, Legend& legend) {
  constexpr auto kNone = "-   ";
  if (cell == nullptr) return kNone;
  const bool rate = which == Figure::kRate;
  const auto& row = rate ? cell->rate : cell->latency;
  if (!row) return cell->problem.empty() ? kNone : "failed   ";
  const std::string value = digits(rate ? row->gb_per_s : std::optional(row->latency_us->p50));
  return fmt::format("{} {:<2}", value, legend.markOf(rate ? cell->rate_way : cell->latency_way));
}

// "64 MiB", "64 x 64 KiB".
std::string blocksOf(const Workload& row) {
  return (row.batch > 1 ? fmt::format("{} x ", row.batch) : "") + base::showSize(row.block_bytes);
}

// Each figure ends with a blank and a mark of two letters. So do the titles, but in blanks.
std::string tableOf(const GpuMatrix& matrix, std::uint32_t processes, Figure which, Legend& legend,
                    std::size_t width) {
  const bool rates = which == Figure::kRate;
  const std::vector<Place> places = placesOf(matrix);
  std::vector<base::TextColumn> columns{base::figure("from \\ to")};
  std::vector<base::TextRow> rows;
  const auto titles = base::mapped(places, [](const Place& to) { return placeName(to) + "   "; });
  for (const std::string& title : titles) columns.push_back(base::figure(title));
  for (const Place& from : places) {
    base::TextRow& row = rows.emplace_back();
    row.cells.push_back(placeName(from));
    for (const Place& to : places)
      row.cells.push_back(figureOf(cellAt(matrix, processes, from, to), which, legend));
  }
  return fmt::format("{}, {} of {}\n{}\n", processesName(processes),
                     rates ? "GB/s of transfers" : "p50 in us of a transfer",
                     blocksOf(rates ? matrix.rate : matrix.latency),
                     base::tableText(columns, rows, width));
}

std::string headOf(const GpuMatrix& matrix) {
  std::string out = fmt::format("viaduct {} on {}: {}, {}\n", matrix.version, matrix.hostname,
                                counted(matrix.gpus.size(), "GPU"), opKindName(matrix.rate.op));
  for (const SeenGpu& gpu : matrix.gpus) {
    std::string peers;
    for (const std::uint32_t peer : gpu.peers)
      peers += fmt::format("{}{}", peers.empty() ? "" : ", ", peer);
    out += fmt::format("  {}{}{}\n", gpu.name, peers.empty() ? "" : ", peer access to GPU ", peers);
  }
  if (matrix.gpus.size() == 1)
    out += "  with one GPU there is no pair of two GPUs: the matrix has the GPU and host memory\n";
  return out + "\n";
}

std::string problemsOf(const GpuMatrix& matrix) {
  std::string out;
  for (const Cell& cell : matrix.cells)
    if (!cell.problem.empty())
      out += fmt::format("{} to {}, {}: {}\n", placeName(cell.from), placeName(cell.to),
                         processesName(cell.processes), cell.problem);
  return out;
}

}  // namespace

// The JSON writer finds this function by argument-dependent lookup.
void describe(JsonWriter& to, const Cell& cell) {
  to.need("from", placeName(cell.from));
  to.need("to", placeName(cell.to));
  to.need("processes", cell.processes);
  to.may("gb_per_s", cell.rate ? cell.rate->gb_per_s : std::nullopt);
  to.may("rate_way", cell.rate_way);
  if (cell.latency && cell.latency->latency_us) to.need("p50_us", cell.latency->latency_us->p50);
  to.may("latency_way", cell.latency_way);
  to.may("problem", cell.problem);
  to.may("rate_row", cell.rate);
  to.may("latency_row", cell.latency);
}

std::string matrixText(const GpuMatrix& matrix, std::size_t width) {
  std::string out = headOf(matrix);
  Legend legend;
  for (const std::uint32_t processes : {1U, 2U}) {
    const bool asked = std::ranges::any_of(
        matrix.cells, [&](const Cell& cell) { return cell.processes == processes; });
    if (!asked) continue;
    for (const Figure which : {Figure::kRate, Figure::kLatency})
      out += tableOf(matrix, processes, which, legend, width);
  }
  out += "ways:\n" + legend.text();
  return out + problemsOf(matrix);
}

std::string matrixJson(const GpuMatrix& matrix) {
  Json gpus = Json::array();
  for (const SeenGpu& gpu : matrix.gpus)
    gpus.push_back({{"gpu", gpu.number}, {"name", gpu.name}, {"peer_access", gpu.peers}});
  return fileText(kMatrixFormat, {{"version", matrix.version},
                                  {"started", matrix.started},
                                  {"end", matrix.end},
                                  {"command", matrix.command},
                                  {"hostname", matrix.hostname},
                                  {"op", opKindName(matrix.rate.op)},
                                  {"gpus", std::move(gpus)},
                                  {"cells", JsonWriter::of(matrix.cells)}});
}

}  // namespace viaduct::measure::matrix
