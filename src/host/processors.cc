#include "host/processors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/text.h"

namespace viaduct::host {
namespace {

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

double secondsIn(std::string_view ticks) {
  return base::numberIn<double>(ticks).value_or(0) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct BusyLine {
  std::string name = {};               // "cpu" for all processors together, or "cpu0"
  std::optional<double> seconds = {};  // nothing: the line is damaged
  double idle = 0;
};

// The lines of /proc/stat about processors, which come first.
std::vector<BusyLine> busyLines(const Tree& tree) {
  std::vector<BusyLine> out;
  for (const std::string& line : tree.lines("/proc/stat")) {
    const auto words = base::wordsOf(line);
    if (words.empty() || !words[0].starts_with("cpu")) break;
    BusyLine& one = out.emplace_back(BusyLine{.name = std::string(words[0])});
    if (words.size() < 9) continue;
    // User, nice, system, irq, soft and stolen; then idle and waiting. Later fields hold guest
    // time, which is part of `user` and `nice` already.
    one.seconds = 0;
    for (const std::size_t field : {1, 2, 3, 6, 7, 8}) *one.seconds += secondsIn(words[field]);
    for (const std::size_t field : {4, 5}) one.idle += secondsIn(words[field]);
  }
  return out;
}

}  // namespace

double ownProcessorSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::optional<ProcessorUse> processorUse(const Tree& tree) {
  ProcessorUse out;
  bool found = false;
  for (const auto& [name, seconds, idle] : busyLines(tree)) {
    if (!seconds) return std::nullopt;
    if (name != "cpu") {
      ++out.count;
      continue;
    }
    found = true;
    out.seconds = *seconds;
    out.idle = idle;
  }
  if (!found || out.count == 0) return std::nullopt;
  return out;
}

std::vector<ProcessorBusy> processorsBusy(const Tree& tree) {
  std::vector<ProcessorBusy> out;
  for (const auto& [name, seconds, idle] : busyLines(tree))
    if (const auto number = base::numberIn<std::uint32_t>(name.substr(3)); number && seconds)
      out.push_back({*number, *seconds});
  return out;
}

}  // namespace viaduct::host
