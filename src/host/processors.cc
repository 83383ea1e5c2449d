#include "host/processors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "base/text.h"

namespace viaduct::host {
namespace {

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
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
  for (const std::string& line : tree.lines("/proc/stat")) {
    const auto words = base::wordsOf(line);
    if (words.empty() || !words[0].starts_with("cpu")) break;
    if (words.size() < 9) return std::nullopt;
    if (words[0] != "cpu") {
      ++out.count;
      continue;
    }
    found = true;
    // User, nice, system, irq, soft and stolen, without idle and waiting. Later fields hold guest
    // time, which is part of `user` and `nice` already.
    for (const std::size_t field : {1, 2, 3, 6, 7, 8})
      out.seconds += base::numberIn<double>(words[field]).value_or(0) /
                     static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  if (!found || out.count == 0) return std::nullopt;
  return out;
}

}  // namespace viaduct::host
