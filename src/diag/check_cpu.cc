// Checks that the CPUs run at their full frequency.
#include <fmt/format.h>

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "diag/hardware.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

constexpr auto kCpus = "/sys/devices/system/cpu";

struct FrequencyPolicy {
  std::string governor = {}, driver = {}, preference = {};
  auto operator<=>(const FrequencyPolicy&) const = default;
};

// Drivers of Intel and AMD that choose the frequency in hardware know two policies, "powersave" and
// "performance". Both policies vary the frequency: the energy performance preference decides how.
bool isDynamic(const FrequencyPolicy& policy) {
  return policy.driver == "intel_pstate" || policy.driver == "amd-pstate-epp" ||
         policy.governor == "ondemand" || policy.governor == "schedutil";
}

bool savesPower(const FrequencyPolicy& policy) {
  const bool prefers = policy.preference == "power" || policy.preference == "balance_power";
  return isDynamic(policy) ? prefers
                           : policy.governor == "powersave" || policy.governor == "conservative";
}

// Groups the CPUs' folders by frequency policy.
std::map<FrequencyPolicy, std::vector<std::string>> frequencyPolicies(const Tree& tree) {
  std::map<FrequencyPolicy, std::vector<std::string>> out;
  for (const std::string& name : tree.list(kCpus)) {
    if (!name.starts_with("cpu") || name.find_first_not_of("0123456789", 3) != std::string::npos)
      continue;
    const std::string folder = fmt::format("{}/{}/cpufreq", kCpus, name);
    FrequencyPolicy policy{.governor = tree.line(folder + "/scaling_governor")};
    if (policy.governor.empty()) continue;
    policy.driver = tree.line(folder + "/scaling_driver");
    policy.preference = tree.line(folder + "/energy_performance_preference");
    out[policy].push_back(folder);
  }
  return out;
}

void addGovernor(const FrequencyPolicy& policy, const std::vector<std::string>& folders, bool saves,
                 Findings& findings) {
  findings.add({.severity = saves ? Severity::kWarning : Severity::kInfo,
                .code = "cpu.governor",
                .what = fmt::format("The frequency governor {} is in use ({} CPUs).",
                                    policy.governor, folders.size()),
                .evidence = {{folders.front() + "/scaling_governor", policy.governor},
                             {folders.front() + "/scaling_driver", policy.driver},
                             {folders.front() + "/energy_performance_preference",
                              policy.preference.empty() ? "absent" : policy.preference}},
                .cause = "A CPU between two messages slows down, and needs time to speed up.",
                .fix = "cpupower frequency-set -g performance",
                .gain = "Small messages have lower and steadier latency."});
}

}  // namespace

void checkCpu(const Node& node, Findings& findings) {
  if (node.tree.list(kCpus).empty())
    return findings.add({.severity = Severity::kInfo,
                         .code = "cpu.unknown",
                         .what = "Could not look at the CPUs: /sys/devices/system/cpu is absent.",
                         .fix = "Run the doctor where /sys is mounted."});
  const bool rdma = hasRdma(node.tree);
  bool slow = false;
  for (const auto& [policy, folders] : frequencyPolicies(node.tree)) {
    if (policy.governor == "performance") continue;
    slow = true;
    addGovernor(policy, folders, rdma && savesPower(policy), findings);
  }
  if (!slow) findings.fine("No CPU governor lowers the frequency.");
}

}  // namespace viaduct::diag
