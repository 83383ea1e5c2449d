#include "harness/samples.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace viaduct::bench {

double Samples::quantile(double part) const {
  if (values_.empty()) return 0;
  auto sorted = values_;
  std::ranges::sort(sorted);
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

Samples operator/(const Samples& a, const Samples& b) {
  Samples out;
  for (std::size_t round = 0; round < a.size(); ++round) out.add(a[round] / b[round]);
  return out;
}
Samples operator/(double amount, const Samples& times) {
  Samples out;
  for (const double time : times.values_) out.add(amount / time);
  return out;
}

double processorSeconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double residentKiB() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

}  // namespace viaduct::bench
