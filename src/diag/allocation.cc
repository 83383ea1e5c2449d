#include "diag/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "base/lists.h"
#include "base/text.h"
#include "diag/name_list.h"

namespace viaduct::diag {
namespace {

using enum AllocationFaultKind;
using InfoJson = nlohmann::json;

constexpr std::string_view kPlugin = "PCIDEVICE_", kInfoEnd = "_INFO";

// A PCI function that the device plugin has given to this pod.
struct GivenFunction {
  std::string variable = {};
  std::string device = {};     // the RDMA device that the plugin names; empty: none
  bool promises_rdma = false;  // the plugin says that the function has an RDMA device
  bool from_info = false;
};

// Orders by PCI address, with the domains of virtual root complexes last.
struct ByAddress {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::tuple(a.size(), std::string_view(a)) < std::tuple(b.size(), std::string_view(b));
  }
};
using GivenFunctions = std::map<std::string, GivenFunction, ByAddress>;

void addFault(Allocation& into, AllocationFaultKind kind, const std::string& variable,
              std::string_view subject, std::string detail) {
  into.faults.push_back({kind, printable(variable), printable(subject), std::move(detail)});
}

// Reads {"0000:19:00.6": {"generic": {...}, "rdma": {"rdma_dev": "mlx5_18"}}}.
void readProviders(const std::string& variable, const std::string& address,
                   const InfoJson& providers, GivenFunctions& functions, Allocation& into) {
  GivenFunction& function = functions[address];
  function.variable = variable;
  function.from_info = true;
  const auto rdma = providers.find("rdma");
  if (rdma == providers.end() || !rdma->is_object()) return;
  function.promises_rdma = true;
  const auto name = rdma->find("rdma_dev");
  if (name == rdma->end()) return;  // an old plugin gives no name
  if (name->is_string() && isDeviceName(name->get_ref<const std::string&>()))
    function.device = name->get<std::string>();
  else
    addFault(into, kHostileName, variable,
             name->is_string() ? name->get_ref<const std::string&>() : name->type_name(),
             "rdma_dev cannot be the name of a device");
}

void readInfo(const std::string& variable, const std::string& text, GivenFunctions& functions,
              Allocation& into) {
  const InfoJson all = InfoJson::parse(text, nullptr, false);
  if (all.is_discarded() || !all.is_object())
    return addFault(into, kBrokenInfo, variable, text,
                    all.is_discarded() ? "is not JSON" : "is not a JSON object");
  for (const auto& [key, providers] : all.items())
    if (!isPciAddress(key))
      addFault(into, kHostileName, variable, key, "is not a PCI address");
    else if (!providers.is_object())
      addFault(into, kBrokenInfo, variable, key, "has no JSON object as its value");
    else
      readProviders(variable, base::lower(key), providers, functions, into);
}

// Reads "0000:19:00.6,0000:19:00.7".
void readAddresses(const std::string& variable, const std::string& list, GivenFunctions& functions,
                   Allocation& into) {
  std::string_view text = list;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    if (!isPciAddress(one))
      addFault(into, kHostileName, variable, one, "is not a PCI address");
    else
      functions.try_emplace(base::lower(one), GivenFunction{.variable = variable});
  }
}

// The name of a resource may itself end in "_INFO", so the value tells whether this is a
// description.
bool isInfo(const std::string& variable, const std::string& text) {
  return variable.ends_with(kInfoEnd) && !isPciAddress(std::string_view(text).substr(0, 12));
}

GivenFunctions readVariables(const Variables& variables, Allocation& into) {
  GivenFunctions out;
  for (const bool info : {true, false})
    for (auto at = variables.lower_bound(std::string(kPlugin));
         at != variables.end() && at->first.starts_with(kPlugin); ++at)
      if (!at->second.empty() && isInfo(at->first, at->second) == info)
        (info ? readInfo : readAddresses)(at->first, at->second, out, into);
  return out;
}

const RdmaDevice* deviceOf(const std::vector<RdmaDevice>& all, const std::string& address,
                           const std::string& name) {
  const RdmaDevice* const there = base::firstWith(all, &RdmaDevice::pci, address);
  return there != nullptr ? there : base::firstWith(all, &RdmaDevice::name, name);
}

void nameMissing(const Tree& tree, const std::string& address, const GivenFunction& function,
                 Allocation& into) {
  const bool there = tree.has("/sys/bus/pci/devices/" + address);
  if (!function.device.empty())
    addFault(into, kNoDevice, function.variable, fmt::format("{} ({})", function.device, address),
             "is not in /sys/class/infiniband");
  else if (function.promises_rdma || !there)
    addFault(into, kNoDevice, function.variable, address,
             there ? "has no RDMA device" : "is not in /sys/bus/pci/devices");
  else
    addFault(into, kNotRdma, function.variable, address, "has no RDMA device");
}

void takeGiven(const Tree& tree, const std::vector<RdmaDevice>& all,
               const GivenFunctions& functions, Allocation& into) {
  bool from_info = false;
  for (const auto& [address, function] : functions) {
    const RdmaDevice* const device = deviceOf(all, address, function.device);
    if (device == nullptr) {
      nameMissing(tree, address, function, into);
      continue;
    }
    if (!function.device.empty() && function.device != device->name)
      addFault(into, kRenamed, function.variable, fmt::format("{} ({})", function.device, address),
               "is " + device->name + " here");
    from_info = from_info || function.from_info;
    if (base::firstWith(into.devices, &RdmaDevice::name, device->name) == nullptr)
      into.devices.push_back(*device);
    if (!base::contains(into.variables, function.variable))
      into.variables.push_back(function.variable);
  }
  if (!into.devices.empty()) into.known_by = from_info ? KnownBy::kInfo : KnownBy::kAddresses;
}

// Finds the pod's devices without the plugin's variables. An unprivileged pod has only its own
// device files. If the files do not tell, virtual functions are taken for the pod's devices, and
// physical functions for the host's.
void guess(const Tree& tree, bool pod, const std::vector<RdmaDevice>& all, Allocation& into) {
  const auto has_file = [&](const RdmaDevice& one) {
    return !one.uverbs.empty() && tree.has("/dev/infiniband/" + one.uverbs);
  };
  std::vector<RdmaDevice> with_file = base::only(all, has_file);
  if (!with_file.empty() && with_file.size() < all.size()) {
    into.known_by = KnownBy::kDeviceFiles;
    into.devices = std::move(with_file);
    return;
  }
  std::vector<RdmaDevice> active = base::only(all, hasActivePort);
  const auto is_virtual = [](const RdmaDevice& one) { return !one.physical.empty(); };
  const bool both =
      std::ranges::any_of(active, is_virtual) && !std::ranges::all_of(active, is_virtual);
  if (both)
    active = base::only(active, [&](const RdmaDevice& one) { return is_virtual(one) == pod; });
  into.known_by = both && pod ? KnownBy::kFunctions : KnownBy::kPorts;
  into.devices = std::move(active);
}

}  // namespace

Allocation allocationOf(const Node& node) {
  const Tree& tree = node.tree;
  Allocation out;
  // A snapshot's folder may hold any name, so other names are left out.
  const std::vector<RdmaDevice> all =
      base::only(rdmaDevices(tree), [](const RdmaDevice& one) { return isDeviceName(one.name); });
  takeGiven(tree, all, readVariables(node.variables, out), out);
  if (out.devices.empty() && !all.empty()) {
    guess(tree, inPod(node), all, out);
    const auto before = [](const RdmaDevice& a, const RdmaDevice& b) {
      return a.pci == b.pci ? a.name < b.name : ByAddress()(a.pci, b.pci);
    };
    std::ranges::sort(out.devices, before);
  }
  if (out.devices.empty()) out.known_by = KnownBy::kNone;
  out.others = base::only(all, [&](const RdmaDevice& one) {
    return base::firstWith(out.devices, &RdmaDevice::name, one.name) == nullptr;
  });
  return out;
}

std::vector<RdmaDevice> devicesToLookAt(const Node& node, const Allocation& given,
                                        Guesses guesses) {
  const bool known =
      given.certain() || (guesses == Guesses::kCount && given.known_by == KnownBy::kFunctions);
  const bool named = given.known_by <= KnownBy::kAddresses || (known && inPod(node));
  return named ? given.devices : rdmaDevices(node.tree);
}

bool inPod(const Node& node) {
  return node.variables.contains("KUBERNETES_SERVICE_HOST") ||
         node.tree.has("/var/run/secrets/kubernetes.io/serviceaccount");
}

bool hasActivePort(const RdmaDevice& device) {
  return std::ranges::any_of(device.ports, &RdmaPort::active);
}

FunctionFault functionFault(const Tree& tree, const RdmaDevice& device) {
  if (device.physical.empty() || device.ports.empty() || hasActivePort(device))
    return FunctionFault::kNo;
  const RdmaPort& port = device.ports.front();
  if (!port.down()) return FunctionFault::kNo;
  const std::string guid = tree.line(device.folder + "/node_guid");
  if (port.infiniband() && !guid.empty() && guid.find_first_not_of("0:") == std::string::npos)
    return FunctionFault::kNoGuid;
  const auto all = rdmaDevices(tree);
  const auto owns = [&](const RdmaDevice& one) {
    return one.pci == device.physical && hasActivePort(one);
  };
  return std::ranges::any_of(all, owns) ? FunctionFault::kLink : FunctionFault::kNo;
}

std::vector<RdmaDevice> physicalListed(const Allocation& given, std::string_view list) {
  std::vector<RdmaDevice> out;
  if (!given.certain()) return out;
  for (const std::string& name : nameList(list).names)
    for (const RdmaDevice& one : given.others) {
      if (one.name == name && !one.pci.empty() &&
          base::firstWith(given.devices, &RdmaDevice::physical, one.pci) != nullptr)
        out.push_back(one);
    }
  return out;
}

std::string namesOf(const std::vector<RdmaDevice>& devices, std::string_view between) {
  std::string out;
  for (const RdmaDevice& one : devices) out.append(out.empty() ? "" : between).append(one.name);
  return out;
}

}  // namespace viaduct::diag
