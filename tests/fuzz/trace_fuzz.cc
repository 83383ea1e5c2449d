// Any bytes as a trace of requests: no crash, and a trace that can be written, read and paged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz/samples.h"
#include "measure/workload/generate_trace.h"
#include "measure/workload/replay_plan.h"

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const std::uint32_t requests : {1U, 8U}) {
    const std::string text =
        textOf(measure::generateTrace({.requests = requests, .seed = requests, .divide = 8}));
    out.emplace_back(text.begin(), text.end());
  }
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace viaduct::measure;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = parseTrace(text, "fuzz");
  if (!trace) return 0;
  const auto again = parseTrace(textOf(*trace), "fuzz");
  if (!again || *again != *trace) std::abort();
  const ReplayPlan plan = planReplay(*trace, 64, 64, 1);
  if (plan.requests.size() + plan.left_out != trace->size()) std::abort();
  return 0;
}
