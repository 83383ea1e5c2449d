#include "measure/result/matrix_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/lists.h"
#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/text.h"

namespace viaduct::measure::matrix {
namespace {

// Gives each way a letter, in the order of first use.
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
  const std::vector<std::string>& ways() const { return ways_; }

 private:
  std::vector<std::string> ways_;
};

// Returns the sources and destinations of the rows in order, without duplicates.
std::vector<std::string> placesOf(std::span<const Row> rows) {
  std::vector<std::string> out;
  for (const Row& row : rows)
    for (const std::string& place : {row.as<MatrixRow>()->from, row.as<MatrixRow>()->to})
      if (std::ranges::find(out, place) == out.end()) out.push_back(place);
  return out;
}

const char* processesName(std::uint32_t count) {
  return count == 1 ? "one process" : "two processes";
}

std::string figureOf(const Row* row, Legend& legend) {
  if (row == nullptr) return "-   ";
  const MatrixRow& kind = *row->as<MatrixRow>();
  if (!isGood(row->verdict)) return "failed   ";
  const std::string value = digits(kind.figure == "rate" ? row->gb_per_s
                                   : row->latency_us     ? std::optional(row->latency_us->p50)
                                                         : std::nullopt);
  return fmt::format("{} {:<2}", value, legend.markOf(kind.way));
}

// "64 MiB", "64 x 64 KiB".
std::string blocksOf(const Row& row) {
  return (row.batch_size > 1 ? fmt::format("{} x ", row.batch_size) : "") +
         base::showSize(row.block_size);
}

// Each figure ends with a blank and a mark of two characters. Titles end with three blanks, so that
// they align with the figures.
void showTable(const std::vector<const Row*>& cells, const std::vector<std::string>& places,
               Legend& legend, TableSink& sink) {
  std::vector<base::TextColumn> columns{base::figure("from \\ to")};
  std::vector<base::TextRow> rows;
  const auto titles = base::mapped(places, [](const std::string& to) { return to + "   "; });
  for (const std::string& title : titles) columns.push_back(base::figure(title));
  for (const std::string& from : places) {
    base::TextRow& row = rows.emplace_back();
    row.cells.push_back(from);
    for (const std::string& to : places) {
      const auto at = std::ranges::find_if(cells, [&](const Row* cell) {
        return cell->as<MatrixRow>()->from == from && cell->as<MatrixRow>()->to == to;
      });
      row.cells.push_back(figureOf(at == cells.end() ? nullptr : *at, legend));
    }
  }
  const Row& first = *cells.front();
  const MatrixRow& kind = *first.as<MatrixRow>();
  sink.table(fmt::format("{}, {} of {}", processesName(kind.processes),
                         kind.figure == "rate" ? "GB/s of transfers" : "p50 in us of a transfer",
                         blocksOf(first)),
             columns, rows);
}

std::vector<const Row*> cellsWith(std::span<const Row> rows, std::uint32_t processes,
                                  std::string_view figure) {
  std::vector<const Row*> out;
  for (const Row& row : rows)
    if (row.as<MatrixRow>()->processes == processes && row.as<MatrixRow>()->figure == figure)
      out.push_back(&row);
  return out;
}

}  // namespace

void show(std::span<const Row> rows, TableSink& sink) {
  Legend legend;
  const std::vector<std::string> places = placesOf(rows);
  for (const std::uint32_t processes : {1U, 2U})
    for (const char* const figure : {"rate", "latency"}) {
      const auto cells = cellsWith(rows, processes, figure);
      if (!cells.empty()) showTable(cells, places, legend, sink);
    }
  sink.line("ways:");
  for (const std::string& way : legend.ways())
    sink.line(fmt::format("  {}  {}", legend.markOf(way), way));
  for (const Row& row : rows)
    if (!isGood(row.verdict))
      sink.note(fmt::format("{}: {}: {}", kindText(row), loudName(row.verdict), row.why));
  if (const std::string words = unprovenWords(rows); !words.empty()) sink.note(words);
}

}  // namespace viaduct::measure::matrix
