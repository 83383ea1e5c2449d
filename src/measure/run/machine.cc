#include "measure/run/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "base/nearest.h"
#include "base/net/address.h"
#include "base/sizes.h"
#include "host/devices.h"
#include "host/facts.h"
#include "host/gpu.h"
#include "host/memory.h"
#include "host/sysfs.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
// Of what is available: the rest is for sockets, sessions and everybody else.
constexpr std::uint64_t kPercent = 90;

// Of a device all that others reach, of an address itself.
std::vector<std::string> addressesOf(const std::string& rail, const std::string& root) {
  const auto device = host::findDevice(rail, root);
  if (!device) return {};
  std::vector<std::string> out;
  for (const std::string& address : device->addresses)
    if (rail == address || (rail == device->name && !address.starts_with("fe80:")))
      out.push_back(address);
  return out;
}

}  // namespace

Status memorySuffices(const Spec& spec, bool local, const std::string& root) {
  const std::uint64_t available = host::availableMemory(root) / 100 * kPercent;
  if (available == 0) return Ok{};
  VIADUCT_TRY(const DeviceBytes bytes, deviceBytes(spec));
  const std::uint32_t members = spec.layout.processes();
  std::uint64_t sum = 0, most = 0;
  for (std::uint32_t rank = 0; rank < members; ++rank) {
    sum += processBytes(spec, bytes, rank);
    most = std::max(most, processBytes(spec, bytes, rank));
  }
  const std::uint64_t needed = local ? sum : most;
  if (needed <= available) return Ok{};
  const std::uint64_t fit = available / (local ? members : 1) / kMiB * kMiB;
  return Error{
      .code = Code::kExhausted,
      .operation = "memory",
      .detail = fmt::format("{} of {} {} not fit: {} can be taken here",
                            local ? fmt::format("{} processes", members) : "a process",
                            base::showSize(most), local ? "do" : "does", base::showSize(available)),
      .remedy = fmt::format("--total_buffer_size {} fits; smaller blocks, batches or --working_set "
                            "need less",
                            base::formatSize(fit))};
}

Status devicesExist(const std::vector<std::string>& names, const std::string& root) {
  const auto interfaces = host::facts(root).interfaces;
  const auto ports = host::rdmaPorts(root);
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
                 .remedy = fmt::format("{}here are {}, or their addresses",
                                       near.empty() ? "" : "did you mean " + near + "? ",
                                       fmt::join(known, ", "))};
  }
  return Ok{};
}

std::vector<std::string> listenHere(const std::vector<std::string>& rails,
                                    const std::string& root) {
  std::vector<std::string> out{"127.0.0.1:0"};
  for (const std::string& rail : rails)
    for (const std::string& address : addressesOf(rail, root)) {
      std::string place = base::hostPortText(address, 0);
      if (std::find(out.begin(), out.end(), place) == out.end()) out.push_back(std::move(place));
    }
  return out;
}

Error noDeviceMemory() {
  const auto gpu = host::findGpu(0);
  return {.code = Code::kUnsupported,
          .operation = "VRAM",
          .detail = gpu ? fmt::format("memory of GPUs ({}) is not built in", gpu->name)
                        : "no usable GPU: " + gpu.error().text(),
          .remedy = "use DRAM"};
}

std::uint64_t coldBytes() {
  const long told = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return 4 * std::max({told > 0 ? static_cast<std::uint64_t>(told) : 0, host::largestCache(),
                       16 * kMiB});
}

}  // namespace viaduct::measure
