#include "measure/report/compare_differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/sizes.h"
#include "measure/report/compare.h"

namespace viaduct::measure {
namespace {

// Options that do not change the measurement: about output and about how processes meet. Also
// options whose values each row repeats, so that rows are compared by them.
constexpr std::array kNoMatter{"json",
                               "output",
                               "interval",
                               "config_file",
                               "meet",
                               "rank",
                               "token",
                               "ip",
                               "port",
                               "asio_address",
                               "asio_port",
                               "name",
                               "listen",
                               "rows",
                               "backend",
                               "backends",
                               "block_sizes",
                               "buffer_sizes",
                               "start_block_size",
                               "max_block_size",
                               "batch",
                               "batch_size",
                               "start_batch_size",
                               "max_batch_size",
                               "op",
                               "op_type",
                               "etcd_endpoints",
                               "benchmark_group"};

using SideFacts =
    std::map<std::string, std::set<std::string>>;  // values of each fact, over one side

void addMachine(SideFacts& to, const host::Facts& host) {
  to["CPU"].insert(host.cpu_model);
  to["cores"].insert(fmt::to_string(host.cores));
  to["kernel"].insert(host.kernel);
  to["memory"].insert(base::roundedSize(host.memory));
  for (const host::Interface& i : host.interfaces)
    if (i.mbit_per_s != 0) to["rate of " + i.name].insert(fmt::format("{} Mbit/s", i.mbit_per_s));
}

SideFacts machinesOf(const std::vector<Report>& side) {
  SideFacts out;
  for (const Report& report : side)
    for (const RunMember& member : report.environment.members) addMachine(out, member.host);
  return out;
}

SideFacts settingsOf(const std::vector<Report>& side) {
  SideFacts out;
  const auto add = [&](const std::string& front, const std::vector<Option>& options) {
    for (const Option& option : options)
      if (std::find(kNoMatter.begin(), kNoMatter.end(), option.name) == kNoMatter.end())
        out[front + option.name].insert(option.value);
  };
  for (const Report& report : side) {
    add("", report.settings);
    add("agent.", report.agent);
  }
  return out;
}

std::string sortedText(const std::set<std::string>& values) {
  if (values.empty()) return "not given";
  std::string out;
  for (const std::string& value : values)
    out += (out.empty() ? "" : " and ") + (value.empty() ? std::string("empty") : value);
  return out;
}

std::vector<std::string> differing(const SideFacts& a, const SideFacts& b) {
  std::set<std::string> names;
  for (const auto& [name, values] : a) names.insert(name);
  for (const auto& [name, values] : b) names.insert(name);
  std::vector<std::string> out;
  const auto in = [](const SideFacts& side, const std::string& name) {
    const auto at = side.find(name);
    return at == side.end() ? std::set<std::string>{} : at->second;
  };
  for (const std::string& name : names)
    if (in(a, name) != in(b, name))
      out.push_back(
          fmt::format("{}: A {}, B {}", name, sortedText(in(a, name)), sortedText(in(b, name))));
  return out;
}

std::set<std::string> fingerprintsOf(const std::vector<Report>& side) {
  std::set<std::string> out;
  for (const Report& report : side) out.insert(report.environment.fingerprint);
  return out;
}

std::vector<std::string> machineDifferences(const std::vector<Report>& a,
                                            const std::vector<Report>& b) {
  const auto of_a = fingerprintsOf(a), of_b = fingerprintsOf(b);
  if (of_a.contains("") || of_b.contains(""))
    return {fmt::format("{} not name the machines of the measurement",
                        of_a.contains("") && of_b.contains("") ? "A and B do"
                        : of_a.contains("")                    ? "A does"
                                                               : "B does")};
  if (of_a == of_b) return {};
  auto out = differing(machinesOf(a), machinesOf(b));
  if (out.empty()) out.push_back("the fingerprints of their machines differ");
  return out;
}

// Returns host names, such as "node-a and node-b". `with_boot` adds the boot ID, which tells hosts
// of equal names apart.
std::string hostsOf(const std::vector<Report>& side, bool with_boot) {
  std::set<std::string> hosts;
  for (const Report& report : side)
    for (const RunMember& member : report.environment.members)
      hosts.insert(with_boot ? fmt::format("{} (boot {})", member.host.hostname,
                                           member.host.boot_id.substr(0, 8))
                             : member.host.hostname);
  return sortedText(hosts);
}

// Machines of one kind may be compared, but a reader should know that they are not the same.
std::vector<std::string> hostDifferences(const std::vector<Report>& a,
                                         const std::vector<Report>& b) {
  for (const bool with_boot : {false, true})
    if (const auto of_a = hostsOf(a, with_boot), of_b = hostsOf(b, with_boot); of_a != of_b)
      return {fmt::format("hosts: A {}, B {}", of_a, of_b)};
  return {};
}

std::set<std::string> toolsOf(const std::vector<Report>& side) {
  std::set<std::string> out;
  for (const Report& report : side) out.insert(toolOf(report));
  return out;
}

// Only viaduct's own files have the agents' settings. If only one side has them, returns one text
// that says so.
std::vector<std::string> settingDifferences(const std::vector<Report>& a,
                                            const std::vector<Report>& b) {
  const auto named = [](const std::vector<Report>& side) {
    return std::any_of(side.begin(), side.end(),
                       [](const Report& one) { return !one.agent.empty(); });
  };
  if (named(a) == named(b)) return differing(settingsOf(a), settingsOf(b));
  const bool ours = named(a);
  return {fmt::format("{} is output of {}, which does not name the settings of {}",
                      ours ? "B" : "A", fmt::join(toolsOf(ours ? b : a), " and "),
                      ours ? "A" : "B")};
}

Error refused(const char* what, const std::vector<std::string>& differences, const char* option) {
  return {
      .code = Code::kInvalid,
      .operation = "compare",
      .detail = fmt::format("A and B differ in their {}: {}", what, fmt::join(differences, "; ")),
      .remedy = fmt::format("to compare anyway, add {}", option)};
}

}  // namespace

Result<std::vector<std::string>> differencesOf(const std::vector<Report>& a,
                                               const std::vector<Report>& b,
                                               const CompareOptions& options) {
  auto out = machineDifferences(a, b);
  if (!out.empty() && !options.across_machines)
    return refused("machines", out, "--across-machines");
  const auto settings = settingDifferences(a, b);
  if (!settings.empty() && !options.across_settings)
    return refused("settings", settings, "--across-settings");
  const auto hosts = hostDifferences(a, b);
  out.insert(out.end(), hosts.begin(), hosts.end());
  out.insert(out.end(), settings.begin(), settings.end());
  return out;
}

}  // namespace viaduct::measure
