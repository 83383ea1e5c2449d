// Any text as another process's metrics: the text joined with others is valid, each line of it is a
// description or a sample, and joining it again changes nothing.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/open_metrics.h"
#include "fuzz/samples.h"

namespace {

using namespace viaduct::base;

std::string ours(std::uint64_t value) {
  MetricsWriter out;
  out.family({.name = "viaduct_pins", .type = "gauge", .unit = "", .help = "Pins."});
  out.sample("", std::array{MetricLabel{"agent", "ours"}}, value);
  return std::move(out).finish();
}

void check(const std::string& theirs) {
  const std::string joined = joinMetrics(std::array{ours(1), theirs + "\n# EOF\n"});
  if (!joined.ends_with("\n# EOF\n") || joinMetrics(std::array{joined}) != joined) std::abort();
  if (joined.find("{agent=\"ours\"} 1\n") == std::string::npos) std::abort();
  std::size_t samples = 0, comments = 0, lines = 0;
  for (std::string_view rest = joined; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    ++lines;
    comments += line.starts_with("# ") ? 1 : 0;
    samples += parseSample(line) ? 1 : 0;
  }
  if (samples + comments != lines || readMetrics(joined).size() != samples) std::abort();
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const std::string& text :
       {ours(2), std::string("# TYPE a counter\n# UNIT a x\n# HELP a b\\n\na_total{b=\"c\\\"d\","
                             "e=\"\xc3\xa4\"} 1.5e-07\na_total 2\n# TYPE viaduct_pins gauge\n"
                             "viaduct_pins{agent=\"x\"} +Inf\n")})
    out.emplace_back(text.begin(), text.end());
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
