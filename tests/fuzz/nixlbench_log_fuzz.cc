// Any bytes as a nixlbench log: no crash, and only rows that a result file can contain.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz/samples.h"
#include "measure/result/nixlbench.h"
#include "measure/result/nixlbench_log.h"
#include "measure/result/row_testing.h"

namespace {

using namespace viaduct::measure;

std::string log(NixlbenchColumns columns) {
  const Row row{.block_size = 4096,
                .gb_per_s = 1.5,
                .prep_us = MeanP99{45, 62},
                .post_us = MeanP99{2.5, 3},
                .tx_us = MeanP99{11.4, 18}};
  return nixlbenchBanner({{"max_block_size", "8192"}}) + nixlbenchHead(columns) + "[pod/a/bench] " +
         nixlbenchLine(row, columns) + "\x1b[1mx | 2026-07-28T10:17:33.4Z " +
         nixlbenchLine(row, columns);
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const auto columns : {NixlbenchColumns::kUsual, NixlbenchColumns::kManyPairs}) {
    const std::string text = log(columns);
    out.emplace_back(text.begin(), text.end());
    const std::string table = text.substr(text.find("Block Size (B)"));
    out.emplace_back(table.begin(), table.end());
  }
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(isNixlbenchLog(text));
  const auto reports = reportsFromNixlbenchLog(text, "fuzz");
  if (!reports) return 0;
  for (const Report& report : *reports)
    for (const Row& row : report.rows) {
      const auto again = rowFromJson(toJson(row));
      if (!again || again->gb_per_s != row.gb_per_s || row.block_size == 0) std::abort();
    }
  return 0;
}
