#include "measure/result/report.h"

#include <fmt/chrono.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/environment.h"
#include "base/random.h"
#include "base/sizes.h"

namespace viaduct::measure {
namespace {

std::string kindOf(const host::Facts& host) {
  std::string out = fmt::format("{}|{}|{}|{}", host.cpu_model, host.cores, host.kernel,
                                (host.memory + base::kGiB / 2) / base::kGiB);
  std::vector<std::uint64_t> rates;
  for (const host::Interface& i : host.interfaces)
    if (i.up && i.mbit_per_s != 0) rates.push_back(i.mbit_per_s);
  std::sort(rates.begin(), rates.end());
  for (const std::uint64_t rate : rates) out += fmt::format("|{}", rate);
  return out;
}

}  // namespace

std::string fingerprintOf(const std::vector<RunMember>& members) {
  std::vector<std::string> kinds;
  kinds.reserve(members.size());
  for (const RunMember& m : members) kinds.push_back(kindOf(m.host));
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a; the hash need not be cryptographic
  for (const std::string& kind : kinds)
    for (const char c : kind + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return kinds.empty() ? std::string{} : fmt::format("{:016x}", hash);
}

const std::string* valueOf(const std::vector<Option>& options, std::string_view name) {
  for (const Option& option : options)
    if (option.name == name) return &option.value;
  return nullptr;
}

std::vector<Option> optionsOf(const Settings& agent) {
  std::vector<Option> out;
  for (const SettingRow& row : settingRows())
    if (row.show != nullptr) out.push_back({settingField(row.variable), row.show(agent)});
  return out;
}

bool isOurs(const Report& report) {
  return !report.version.empty() && report.version[0] >= '0' && report.version[0] <= '9';
}

std::string toolOf(const Report& report) {
  return (isOurs(report) ? "viaduct " : "") + report.version;
}

void nameRun(std::vector<Row>& rows) {
  const auto high = base::secretNumber(), low = base::secretNumber();
  if (!high || !low) return;
  for (Row& row : rows) row.run = fmt::format("{:016x}{:016x}", *high, *low);
}

Report startReport(std::string version, const Settings& agent) {
  Report out{.version = std::move(version),
             .started = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))),
             .agent = optionsOf(agent)};
  const auto& named = agent.backends;
  for (const BackendFacts& backend : backendFacts()) {
    if (backend.variables.empty()) continue;
    if (!named.empty() && std::find(named.begin(), named.end(), backend.name) == named.end())
      continue;
    for (const std::string& one : base::environmentOf(backend.variables)) {
      const auto equals = one.find('=');
      out.agent.push_back({one.substr(0, equals), one.substr(equals + 1)});
    }
  }
  return out;
}

}  // namespace viaduct::measure
