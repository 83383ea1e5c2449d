// Checks variables that name devices, interfaces and GIDs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "base/lists.h"
#include "base/text.h"
#include "diag/name_list.h"
#include "diag/variable_checks.h"

namespace viaduct::diag {
namespace {

using base::contains;

std::string exactHca(const std::vector<std::string>& names) {
  return fmt::format("export NCCL_IB_HCA='={}'", fmt::join(names, ","));
}

// Devices that a list takes besides those that it names: the prefix "mlx5_1" also takes mlx5_10.
std::vector<std::string> takenByPrefix(const PodView& pod, const NameList& list) {
  std::vector<RdmaDevice> all = pod.given.devices;
  all.insert(all.end(), pod.given.others.begin(), pod.given.others.end());
  std::vector<std::string> out;
  if (list.exact) return out;
  for (const RdmaDevice& longer : all)
    for (const RdmaDevice& named : all)
      if (longer.name != named.name && longer.name.starts_with(named.name) &&
          contains(list.names, named.name) && !contains(list.names, longer.name) &&
          !contains(out, longer.name))
        out.push_back(longer.name);
  return out;
}

// Names in a list that match no device of the node.
std::vector<std::string> nowhereIn(const PodView& pod, const NameList& list) {
  std::vector<std::string> out;
  for (const std::string& name : list.names) {
    const NameList alone{.exact = list.exact, .names = {name}};
    const auto same = [&](const RdmaDevice& one) { return alone.matches(one.name); };
    if (std::ranges::none_of(pod.given.devices, same) &&
        std::ranges::none_of(pod.given.others, same))
      out.push_back(printable(name));
  }
  return out;
}

void reportNoHca(const VariableScene& scene, const NameList& list) {
  const auto taken = [&](const RdmaDevice& one) { return list.takes(one.name); };
  const std::vector<std::string> nowhere = nowhereIn(scene.pod, list);
  const std::string exact = exactHca(base::mapped(scene.pod.verbs, &RdmaDevice::name));
  if (std::ranges::none_of(scene.pod.verbs, taken))
    return scene.add(
        "NCCL_IB_HCA",
        {.severity = Severity::kWarning,
         .what = "matches none of this pod's RDMA devices.",
         .cause = "NCCL finds no such device and falls back to TCP. Each pod gets other "
                  "devices, so a fixed list fits only by chance.",
         .fix = exact + "\nor start it with: viaduct exec -- COMMAND",
         .gain = "NCCL uses RDMA instead of TCP."});
  if (nowhere.empty() || list.excludes) return;
  scene.add("NCCL_IB_HCA",
            {.severity = Severity::kWarning,
             .what = fmt::format("names devices that are not here: {}.", fmt::join(nowhere, ", ")),
             .cause = "The list is of another pod or node.",
             .fix = exact,
             .gain = "NCCL uses all devices of this pod."});
}

std::string transportIn(std::string one) {
  if (one.starts_with('\\')) one.erase(0, 1);
  return one.substr(0, one.find(':'));
}

bool isReliable(std::string_view transport) {
  return transport == "all" || transport == "ib" || transport == "srd" ||
         transport.starts_with("rc") || transport.starts_with("dc");
}

struct Transports {
  bool excludes = false;
  std::vector<std::string> names = {};
  bool has(const std::string& name) const { return contains(names, name); }
  bool rdma() const {
    if (!excludes) return std::ranges::any_of(names, isReliable);
    return !has("all") && !has("ib") && !(has("rc") && has("dc"));
  }
  bool cuda() const {
    if (excludes) return !has("cuda") && !has("cuda_copy");
    return has("all") || has("cuda") || has("cuda_copy") || has("cuda_ipc");
  }
};

Transports transportsIn(std::string_view text) {
  Transports out{.excludes = text.starts_with('^')};
  if (out.excludes) text.remove_prefix(1);
  for (std::string& one : base::partsOf(text)) out.names.push_back(transportIn(std::move(one)));
  return out;
}

void checkTransports(const VariableScene& scene, const std::string& text) {
  const Transports transports = transportsIn(text);
  if (!transports.rdma())
    return scene.add("UCX_TLS",
                     {.severity = Severity::kWarning,
                      .what = "leaves UCX without rc and dc, its RDMA transports.",
                      .cause = "UCX uses only the transports of the list. Operators and examples "
                               "often pin tcp.",
                      .gain = "UCX uses RDMA instead of TCP."});
  if (scene.pod.gpus == 0 || transports.cuda()) return;
  scene.add("UCX_TLS",
            {.severity = Severity::kWarning,
             .code = "variables.ucx-tls-cuda",
             .what = "leaves UCX without cuda_copy and cuda_ipc.",
             .cause = "Without them UCX takes GPU memory for host memory, and crashes on "
                      "the first access.",
             .fix = transports.excludes ? "unset UCX_TLS"
                                        : fmt::format("export UCX_TLS='{},cuda'", printable(text)),
             .gain = "UCX can move GPU memory."});
}

// How often a list names RDMA devices with a port, as in mlx5_0:1, and without.
struct DeviceMentions {
  std::size_t with_port = 0, without_port = 0;
};

DeviceMentions mentionsOf(const std::vector<RdmaDevice>& devices,
                          const std::vector<std::string>& names) {
  DeviceMentions out;
  for (const RdmaDevice& one : devices)
    for (const std::string& name : names) {
      if (name == one.name) ++out.without_port;
      if (name.starts_with(one.name + ":")) ++out.with_port;
    }
  return out;
}

void checkUcxDevices(const VariableScene& scene, std::string_view text) {
  const bool excludes = text.starts_with('^');
  const std::vector<std::string> names = base::partsOf(text.substr(excludes ? 1 : 0));
  if (contains(names, "all") || !physicalListed(scene.pod.given, text).empty()) return;
  const DeviceMentions named = mentionsOf(scene.pod.verbs, names);
  const std::string fix =
      fmt::format("export UCX_NET_DEVICES={}", activePorts(scene.pod.verbs, PortNames::kAll));
  if (excludes ? named.with_port >= scene.pod.verbs.size()
               : named.with_port + named.without_port == 0)
    return scene.add("UCX_NET_DEVICES",
                     {.severity = Severity::kWarning,
                      .what = "leaves UCX without an RDMA device of this pod.",
                      .cause = "UCX uses only the devices of the list, so it falls back to TCP or "
                               "finds no transport.",
                      .fix = fix,
                      .gain = "UCX uses RDMA instead of TCP."});
  if (excludes || named.with_port != 0) return;
  scene.add("UCX_NET_DEVICES",
            {.severity = Severity::kWarning,
             .code = "variables.ucx-net-devices-port",
             .what = "names devices without their port.",
             .cause = "UCX matches an RDMA device only with its port, as in mlx5_0:1. It ignores a "
                      "name without the port, with a warning.",
             .fix = fix,
             .gain = "UCX uses RDMA instead of TCP."});
}

// Returns why no other host can be reached through this GID; empty: the GID is right.
std::string faultOf(const RdmaPort& port, std::uint64_t index) {
  const Gid* const at = base::firstWith(port.gids, &Gid::index, index);
  if (at == nullptr) return "an empty GID";
  if (!port.roce()) return {};
  if (at->linkLocal()) return "a link-local GID";
  return at->type.empty() || at->type == "RoCE v2" ? std::string() : "a RoCE v1 GID";
}

void checkGidIndex(const VariableScene& scene, const char* name, std::uint64_t index) {
  std::vector<Evidence> evidence;
  std::map<std::string, std::vector<std::string>> wrong;  // the devices of each fault
  for (const RdmaDevice& one : scene.pod.verbs)
    for (const RdmaPort& port : one.ports) {
      const std::string fault = port.active() && !port.gids.empty() ? faultOf(port, index) : "";
      if (fault.empty()) continue;
      wrong[fault].push_back(one.name);
      evidence.push_back({fmt::format("{}/gids/{}", port.folder, index), fault});
      if (const Gid* const right = routableGid(port))
        evidence.push_back(
            {fmt::format("{}/gids/{}", port.folder, right->index), right->type + " " + right->gid});
    }
  if (wrong.empty()) return;
  const auto selected = base::mapped(wrong, [](const auto& one) {
    return fmt::format("{} of {}", one.first, fmt::join(one.second, ", "));
  });
  scene.add(
      name,
      {.severity = Severity::kFailure,
       .what = fmt::format("selects {}.", fmt::join(selected, ", and ")),
       .evidence = std::move(evidence),
       .cause = "Indices differ between devices and change with addresses. Connections then "
                "end with error 12, or never form.",
       .fix = fmt::format("unset {}\nNCCL 2.21 and newer, and UCX, choose the index for each "
                          "device.",
                          name),
       .gain = "Each device uses the RoCE v2 GID that holds the IP address of its interface."});
}

// `prefixes`: NCCL takes names by their prefix; Gloo and TensorPipe take whole names.
void checkInterfaces(const VariableScene& scene, const char* name, bool prefixes) {
  const std::string* const value = scene.node.variable(name);
  if (value == nullptr) return;
  NameList list = nameList(*value);
  list.exact = list.exact || !prefixes;
  const auto& there = scene.pod.interfaces;
  const auto takes = [&](const std::string& one) { return list.takes(one); };
  if (std::ranges::any_of(there, takes)) return;
  if (there.empty())
    return scene.add(name, {.severity = Severity::kUnknown,
                            .code = "variables.interfaces-unknown",
                            .what = "cannot be compared with the interfaces of this node.",
                            .cause = "/sys/class/net is empty or missing.",
                            .fix = "Mount /sys into the container."});
  const std::string& best = scene.pod.default_interface;
  scene.add(name,
            {.severity = Severity::kFailure,
             .what = "takes no interface of this pod.",
             .evidence = {{"/sys/class/net", fmt::format("{}", fmt::join(there, ", "))}},
             .cause = "The processes of a job exchange their addresses there. Without an "
                      "interface they fail or hang at the start.",
             .fix = best.empty() ? fmt::format("unset {}", name)
                                 : fmt::format("export {}='{}{}'", name, prefixes ? "=" : "", best),
             .gain = "The processes of a job find each other."});
}

}  // namespace

void checkNcclDevices(const VariableScene& scene) {
  const std::string* const value = scene.node.variable("NCCL_IB_HCA");
  if (value == nullptr || scene.pod.verbs.empty()) return;
  const NameList list = nameList(*value);
  if (list.names.empty() || !physicalListed(scene.pod.given, *value).empty()) return;
  if (const auto more = takenByPrefix(scene.pod, list); !more.empty())
    return scene.add(
        "NCCL_IB_HCA",
        {.severity = Severity::kWarning,
         .code = "variables.nccl-ib-hca-prefix",
         .what = fmt::format("{} {}, too.", list.excludes ? "excludes" : "takes",
                             fmt::join(more, ", ")),
         .cause = "Without \"=\" NCCL matches the beginnings of names.",
         .fix = list.excludes ? fmt::format("export NCCL_IB_HCA='^={}'", fmt::join(list.names, ","))
                              : exactHca(list.names),
         .gain = "NCCL uses only the devices that are named."});
  reportNoHca(scene, list);
}

void checkUcx(const VariableScene& scene) {
  if (scene.pod.verbs.empty()) return;
  if (const std::string* const text = scene.node.variable("UCX_TLS")) checkTransports(scene, *text);
  if (const std::string* const text = scene.node.variable("UCX_NET_DEVICES"))
    checkUcxDevices(scene, *text);
}

void checkGidIndices(const VariableScene& scene) {
  for (const char* const name : {"NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX", "NVSHMEM_IB_GID_INDEX"})
    if (const std::string* const value = scene.node.variable(name))
      // With -1 and auto, the library itself chooses the index.
      if (const auto index = base::numberIn<std::uint64_t>(*value))
        checkGidIndex(scene, name, *index);
}

void checkInterfaceNames(const VariableScene& scene) {
  checkInterfaces(scene, "NCCL_SOCKET_IFNAME", true);
  checkInterfaces(scene, "GLOO_SOCKET_IFNAME", false);
  checkInterfaces(scene, "TP_SOCKET_IFNAME", false);
}

}  // namespace viaduct::diag
