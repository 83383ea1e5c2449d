#include "host/processors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

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

std::optional<ProcessorUse> processorUse(const std::string& root) {
  std::ifstream file(root + "/proc/stat");
  ProcessorUse out;
  bool found = false;
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    std::istringstream words(line);
    std::string name;
    // Later fields hold guest time, which is part of `user` and `nice` already.
    std::uint64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft = 0,
                  stolen = 0;
    if (!(words >> name >> user >> nice >> system >> idle >> waiting >> irq >> soft >> stolen))
      return std::nullopt;
    if (name != "cpu") {
      ++out.count;
      continue;
    }
    found = true;
    out.seconds = static_cast<double>(user + nice + system + irq + soft + stolen) /
                  static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  if (!found || out.count == 0) return std::nullopt;
  return out;
}

}  // namespace viaduct::host
