#include "device/fake/faults.h"

#include <signal.h>

#include <cstdlib>

#include "device/fake/configuration.h"

namespace viaduct::fakegpu {

void Faults::plan(const std::string& text) {
  for (const std::string& row : listOf(text)) {
    const std::size_t first = row.find(':');
    const std::size_t second = row.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) std::abort();
    plan(row.substr(0, first),
         static_cast<unsigned>(std::atoi(row.substr(first + 1, second - first - 1).c_str())),
         std::atoi(row.substr(second + 1).c_str()));
  }
}

void Faults::plan(const std::string& call, unsigned nth, int code) {
  if (code == 0) {
    plans_.erase(call);
  } else {
    plans_[call] = Plan{nth, code};
  }
}

CUresult Faults::count(std::string_view call) {
  ++counts_[std::string(call)];
  const auto planned = plans_.find(call);
  if (planned == plans_.end()) return CUresult::kSuccess;
  if (planned->second.nth > 1) {
    --planned->second.nth;
    return CUresult::kSuccess;
  }
  const int code = planned->second.code;
  if (planned->second.nth == 1) plans_.erase(planned);
  if (code == kKill) ::raise(SIGKILL);
  return static_cast<CUresult>(code);
}

std::uint64_t Faults::counted(std::string_view call) const {
  const auto found = counts_.find(call);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace viaduct::fakegpu
