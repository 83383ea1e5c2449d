// Any bytes as a result file or a row: no crash. An accepted one keeps its values when it is
// written and read again, except that an empty fingerprint is filled in.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz/samples.h"
#include "measure/result/report.h"
#include "measure/result/row_testing.h"

namespace {

using namespace viaduct::measure;

Row someRow() {
  return {.backend = "tcp",
          .block_size = 4096,
          .gb_per_s = 3.25,
          .gb_per_s_parts = {3, 3.25},
          .latency_us = Latency{1, 2, 3, 4, 5, 6, 7},
          .tx_us = MeanP99{7, 9},
          .cpu_s = CpuSeconds{1, 2},
          .rate = OpenLoop{1000, 999.5, "poisson"},
          .pairs = {{.initiator = 0, .target = 1, .gb_per_s = 1.5}},
          .path = {{"tcp", "socket", "lo", 262144, 64, Proven::kYes}},
          .ceiling = Ceiling{"link eth0", 12.5, 26},
          .verdict = Verdict::kCorrupt,
          .why = "block 3"};
}

Report someReport() {
  return {.version = "1",
          .started = "2026-01-02T03:04:05Z",
          .environment = {.members = {{.rank = 0, .name = "a", .role = "initiator"}}},
          .settings = {{"op", "write"}},
          .agent = {{"detect", "2s"}},
          .rows = {someRow()},
          .conclusion = {"fine"}};
}

viaduct::fuzz::Sample sample(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  return {sample(toJson(someReport())), sample(toJson(Report{})), sample(toJson(someRow()))};
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto report = reportFromJson(text, "fuzz")) {
    const auto again = reportFromJson(toJson(*report), "fuzz");
    if (report->environment.fingerprint.empty())
      report->environment.fingerprint = fingerprintOf(report->environment.members);
    if (!again || *again != *report) std::abort();
  }
  if (const auto row = rowFromJson(text)) {
    const auto again = rowFromJson(toJson(*row));
    if (!again || *again != *row) std::abort();
  }
  return 0;
}
