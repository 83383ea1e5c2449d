#include "measure/workload/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "base/nearest.h"
#include "base/net/address.h"
#include "base/sizes.h"
#include "host/devices.h"
#include "host/interfaces.h"
#include "host/memory.h"
#include "host/rdma.h"

namespace viaduct::measure {
namespace {

// The usable part of the available memory. Sockets, sessions and other programs need the rest.
constexpr std::uint64_t kPercent = 90;

// Returns a device's addresses without link-local ones. If `rail` is an address, returns it alone.
std::vector<std::string> addressesOf(const std::string& rail, const host::Tree& tree) {
  const auto device = host::findDevice(rail, tree);
  if (!device) return {};
  std::vector<std::string> out;
  for (const std::string& address : device->addresses)
    if (rail == address || (rail == device->name && !address.starts_with("fe80:")))
      out.push_back(address);
  return out;
}

bool canBe(const BackendInfo& backend, std::string_view word) {
  if (word == "rdma") return backend.rdma;
  if (word == "same-host") return backend.same_host;
  if (word == "not-tcp") return !backend.tcp;
  constexpr std::string_view kBackend = "backend:";
  // Whether a row meets any other requirement is only known after the row.
  return !word.starts_with(kBackend) || word.substr(kBackend.size()) == backend.name;
}

std::string lackOf(std::string_view word) {
  if (word == "rdma") return "no RDMA";
  if (word == "same-host") return "no path within this host";
  if (word == "not-tcp") return "no path but TCP";
  return fmt::format("no {}", word);
}

struct ByRequirement {
  std::vector<std::string> able = {}, unable = {};
  std::vector<std::string> told = {};  // the unable ones with their texts
};

ByRequirement splitBy(std::string_view word, const std::vector<BackendInfo>& backends) {
  ByRequirement out;
  for (const BackendInfo& backend : backends) {
    // Skips backends without facts. They only carry stages, and no row measures them.
    if (!backend.open || backendFacts(backend.name) == nullptr) continue;
    (canBe(backend, word) ? out.able : out.unable).push_back(backend.name);
    if (!canBe(backend, word))
      out.told.push_back(backend.text.empty() ? backend.name
                                              : fmt::format("{} ({})", backend.name, backend.text));
  }
  return out;
}

}  // namespace

Status requirementMet(const std::vector<BackendInfo>& backends, std::string_view require) {
  for (const std::string_view word : requirementWords(require)) {
    const auto [able, unable, told] = splitBy(word, backends);
    if (unable.empty()) continue;
    return Error{
        .code = Code::kUnsupported,
        .operation =
            fmt::format("REQUIREMENT NOT MET: {} {}", lackOf(word),
                        able.empty() ? "here" : "by " + fmt::format("{}", fmt::join(unable, ", "))),
        .detail = fmt::format("--require {} excludes rows over {}", word, fmt::join(told, ", ")),
        .remedy = able.empty() ? "`viaduct bench --explain` lists the backends"
                               : fmt::format("use --backend {}", fmt::join(able, ","))};
  }
  return Ok{};
}

std::uint64_t memoryOfThisHost() { return host::availableMemory(); }

Status memorySuffices(const Spec& spec, bool local, const host::Tree& tree) {
  const std::uint64_t available = host::availableMemory(tree) / 100 * kPercent;
  if (available == 0) return Ok{};
  VIADUCT_TRY(const DeviceBytes all, deviceBytes(spec));
  const DeviceBytes bytes = hostBytes(spec, all);
  const std::uint32_t members = spec.layout.processes();
  std::uint64_t sum = 0, most = 0;
  for (std::uint32_t rank = 0; rank < members; ++rank) {
    sum += processBytes(spec, bytes, rank);
    most = std::max(most, processBytes(spec, bytes, rank));
  }
  const std::uint64_t needed = local ? sum : most;
  if (needed <= available) return Ok{};
  const bool several = local && members > 1;
  const std::uint64_t fit = available / (local ? members : 1) / base::kMiB * base::kMiB;
  return Error{
      .code = Code::kExhausted,
      .operation = "memory",
      .detail = fmt::format("{} of {} {} not fit: {} of memory is available",
                            several ? fmt::format("{} processes", members) : "a process",
                            base::roundedSize(most), several ? "do" : "does",
                            base::roundedSize(available)),
      .remedy = "use " + joined({{fmt::format("--total_buffer_size {}", base::formatSize(fit)),
                                  "total_buffer_size"},
                                 {"smaller blocks or batches"},
                                 {"a smaller --working_set", "working_set"}},
                                spec.flags)};
}

Status devicesExist(const std::vector<std::string>& names, const host::Tree& tree) {
  const auto interfaces = host::interfaces(tree);
  const auto ports = host::rdmaPorts(tree);
  std::vector<std::string> known;
  known.reserve(interfaces.size() + ports.size());
  for (const host::Interface& one : interfaces) known.push_back(one.name);
  for (const host::RdmaPort& port : ports) known.push_back(port.name);
  for (const std::string& name : names) {
    const bool there = std::any_of(interfaces.begin(), interfaces.end(),
                                   [&](const host::Interface& one) {
                                     return one.name == name ||
                                            std::find(one.addresses.begin(), one.addresses.end(),
                                                      name) != one.addresses.end();
                                   }) ||
                       std::any_of(ports.begin(), ports.end(), [&](const host::RdmaPort& port) {
                         return port.device == name.substr(0, name.find(':'));
                       });
    if (there) continue;
    const std::string near = base::nearest(name, known);
    return Error{.code = Code::kNotFound,
                 .operation = "--device_list",
                 .detail = fmt::format("there is no device \"{}\"", name),
                 .remedy = fmt::format("{}use one of {}, or one of their addresses",
                                       near.empty() ? "" : "did you mean " + near + "? ",
                                       fmt::join(known, ", "))};
  }
  return Ok{};
}

std::vector<std::string> listenHere(const std::vector<std::string>& rails, const host::Tree& tree) {
  std::vector<std::string> out{"127.0.0.1:0"};
  for (const std::string& rail : rails)
    for (const std::string& address : addressesOf(rail, tree)) {
      std::string place = base::hostPortText(address, 0);
      if (std::find(out.begin(), out.end(), place) == out.end()) out.push_back(std::move(place));
    }
  return out;
}

std::uint64_t coldBytes() {
  const long told = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return 4 * std::max({told > 0 ? static_cast<std::uint64_t>(told) : 0, host::largestCache(),
                       16 * base::kMiB});
}

}  // namespace viaduct::measure
