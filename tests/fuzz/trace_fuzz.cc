// Any bytes as a trace of requests: no crash, and a trace that can be written, read and paged.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/samples.h"
#include "measure/workload/generate_trace.h"
#include "measure/workload/read_trace.h"
#include "measure/workload/replay_plan.h"
#include "measure/workload/trace_format.h"

namespace viaduct::fuzz {
namespace {

// Lines that the generator does not make.
constexpr std::array kOthers{
    std::string_view(
        "{\"delay\": 1.5, \"session_id\": \"a\", \"input_length\": 655, \"hash_ids\": [0, 1, 2]}\n"
        "{\"delay\": 7, \"session_id\": \"a\", \"input_length\": 2000, \"hash_ids\": [0, 0]}\n"),
    std::string_view(
        "\xef\xbb\xbf\"Timestamp\",Session ID,Elapsed time,\"Request tokens\",Response tokens\r\n"
        "5.25,1,2,\"472\",18\r\n3,,,0,0\r\n"),
    std::string_view("ContextTokens,GeneratedTokens,TIMESTAMP\n"
                     "12,4,\"2024-02-29T23:59:60.1+05:30\"\n1,2,1970-01-01 00:00:00Z"),
};

}  // namespace

std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const auto& format : measure::kTraceFormats)
    for (const std::uint32_t requests : {1U, 8U}) {
      const auto trace =
          measure::generateTrace({.requests = requests, .seed = requests, .divide = 8});
      const std::string text = textOf(inFormat(trace, format.value));
      out.emplace_back(text.begin(), text.end());
    }
  for (const std::string_view text : kOthers) out.emplace_back(text.begin(), text.end());
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace viaduct::measure;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = parseTrace(text, "fuzz");
  if (!trace) return 0;
  const auto again = parseTrace(textOf(trace->trace), "fuzz");
  if (!again || again->trace != trace->trace) std::abort();
  for (const std::uint32_t block : {16U, 64U}) {
    const ReplayPlan plan = planReplay(trace->trace, 64, block, 1);
    if (plan.requests.size() + plan.left_out != trace->trace.requests.size()) std::abort();
  }
  return 0;
}
