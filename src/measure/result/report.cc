#include "measure/result/report.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/environment.h"
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

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ","));
}

}  // namespace

std::string fingerprintOf(const std::vector<RunMember>& members) {
  std::vector<std::string> kinds;
  kinds.reserve(members.size());
  for (const RunMember& m : members) kinds.push_back(kindOf(m.host));
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a: short, and nobody is kept out by it
  for (const std::string& kind : kinds)
    for (const char c : kind + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return kinds.empty() ? std::string{} : fmt::format("{:016x}", hash);
}

namespace {

std::string toggleName(Toggle toggle) {
  return toggle == Toggle::kAuto ? "auto" : toggle == Toggle::kOn ? "on" : "off";
}

std::string portsName(const PortRange& ports) {
  return ports.first == 0 ? "" : fmt::format("{}-{}", ports.first, ports.last);
}

}  // namespace

std::vector<Option> optionsOf(const Settings& s) {
  return {{"name", s.name},
          {"listen", joined(s.listen)},
          {"insecure", s.insecure ? "true" : "false"},
          {"backends", joined(s.backends)},
          {"rails", joined(s.rails)},
          {"sockets", fmt::format("{}", s.sockets)},
          {"tcp_ports", portsName(s.tcp_ports)},
          {"striping", toggleName(s.striping)},
          {"min_chunk", s.min_chunk == 0 ? "auto" : base::formatSize(s.min_chunk)},
          {"ofi_provider", s.ofi_provider},
          {"inject", toggleName(s.inject)},
          {"doorbell", toggleName(s.doorbell)},
          {"copy_threads", fmt::format("{}", s.copy_threads)},
          {"wide_copies", toggleName(s.wide_copies)},
          {"populate", base::formatSize(s.populate)},
          {"detect", base::formatDuration(s.detect)},
          {"deadline", base::formatDuration(s.deadline)},
          {"grace", base::formatDuration(s.grace)},
          {"spin", base::formatDuration(s.spin)},
          {"note_backlog", base::formatSize(s.note_backlog)},
          {"weather", s.weather}};
}

std::string toolOf(const Report& report) {
  const bool ours = !report.version.empty() && report.version[0] >= '0' && report.version[0] <= '9';
  return (ours ? "viaduct " : "") + report.version;
}

Report startReport(std::string version, const Settings& agent) {
  Report out{.version = std::move(version),
             .started = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))),
             .agent = optionsOf(agent)};
  const auto& named = agent.backends;
  for (const auto& [backend, prefix] : {std::pair{"ofi", "FI_"}, std::pair{"ucx", "UCX_"}}) {
    if (!named.empty() && std::find(named.begin(), named.end(), backend) == named.end()) continue;
    for (const std::string& one : base::environmentOf(prefix)) {
      const auto equals = one.find('=');
      out.agent.push_back({one.substr(0, equals), one.substr(equals + 1)});
    }
  }
  return out;
}

}  // namespace viaduct::measure
