// Any bytes as a log: no crash, a printable result, and the same result however the log is split.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "diag/explain/explanation.h"
#include "diag/explain/log_reader.h"
#include "diag/explain/samples_testing.h"
#include "fuzz/samples.h"

namespace {

using namespace viaduct::diag;

LogSummary readInTwo(std::string_view log, std::size_t cut) {
  LogScanner scanner;
  scanner.feed(log.substr(0, cut));
  scanner.feed(log.substr(cut));
  return scanner.finish();
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  std::string log;
  for (const diag::LogSample& sample : diag::allSamples()) {
    log.append("\x1b[31m").append(sample.line).append("\x1b[0m\r\n");
    if (log.size() < 1000) continue;
    out.emplace_back(log.begin(), log.end());
    log.clear();
  }
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view log(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = size == 0 ? 0 : data[0] % size;
  const LogSummary summary = readInTwo(log, size);
  const std::string text = explanationText(summary);
  if (explanationText(readInTwo(log, cut)) != text) std::abort();
  for (const char c : text + explanationJson(summary).dump())
    if (c != '\n' && (c < ' ' || c > '~')) std::abort();
  return 0;
}
