#include "diag/node_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/sizes.h"
#include "base/text.h"
#include "diag/hardware.h"
#include "diag/process_facts.h"
#include "host/memory.h"
#include "host/nearness.h"

namespace viaduct::diag {
namespace {

constexpr auto kGpus = "/proc/driver/nvidia/gpus";

std::string processors(const Tree& tree) {
  const std::string text = tree.read("/proc/cpuinfo").text;
  const auto count = std::ranges::count_if(base::partsOf(text, '\n'), [](const std::string& line) {
    return line.starts_with("processor");
  });
  if (count == 0) return {};
  const std::string model = valueIn(text, "model name");
  return fmt::format("{} × {}", count, model.empty() ? "unknown model" : model);
}

std::string memory(const Tree& tree) {
  const auto total = host::memInfo(tree, "MemTotal"), huge = host::memInfo(tree, "Hugepagesize");
  if (!total) return {};
  return fmt::format("{}, {} huge pages{}", base::roundedSize(*total),
                     valueIn(tree.read("/proc/meminfo").text, "HugePages_Total"),
                     huge ? " of " + base::showSize(*huge) : "");
}

std::string lockedMemory(const Tree& tree) {
  const auto limit = processLimit(tree.read(kLimitsFile).text, "Max locked memory");
  if (!limit) return {};
  const std::string soft = shownLimit(limit->soft);
  return limit->soft == limit->hard
             ? soft
             : fmt::format("{}, hard limit {}", soft, shownLimit(limit->hard));
}

std::string gpus(const Tree& tree) {
  std::map<std::string, int> models;
  for (const std::string& address : tree.list(kGpus))
    ++models[valueIn(tree.read(fmt::format("{}/{}/information", kGpus, address)).text, "Model")];
  std::vector<std::string> out;
  out.reserve(models.size());
  for (const auto& [model, count] : models) out.push_back(fmt::format("{} × {}", count, model));
  if (!out.empty()) return fmt::format("{}", fmt::join(out, ", "));
  const std::size_t count = countNvidiaGpus(tree);
  return count == 0 ? "none" : fmt::format("{}, no driver loaded", count);
}

std::string describe(const RdmaDevice& device) {
  std::vector<std::string> ports;
  ports.reserve(device.ports.size());
  for (const RdmaPort& port : device.ports)
    ports.push_back(fmt::format("{}, {}, {}", port.rate, port.link_layer, port.state));
  return fmt::format("{} {}, firmware {}, {}; PCI {}, NUMA node {}", device.name, device.type,
                     device.firmware, fmt::join(ports, "; "), device.pci,
                     device.function ? std::to_string(device.function->place.node) : "unknown");
}

std::string describeInterface(const Node& node, const std::string& name) {
  const std::string at = "/sys/class/net/" + name;
  std::vector<std::string> addresses;
  for (const InterfaceAddress& one : node.live.addresses)
    if (one.interface == name) addresses.push_back(fmt::format("{}/{}", one.address, one.prefix));
  const auto speed = node.tree.tryRead(at + "/speed");  // refused while the link is down
  return fmt::format("{}: {}, MTU {} bytes{}{}{}", name, node.tree.line(at + "/operstate"),
                     node.tree.line(at + "/mtu"),
                     speed && speed.text != "-1" ? fmt::format(", {} Mb/s", speed.text) : "",
                     addresses.empty() ? "" : ", ", fmt::join(addresses, " "));
}

class CardRows {
 public:
  void row(std::string_view item, const std::string& value) {
    out_.push_back({std::string(item), value.empty() ? "unknown" : value});
  }
  std::vector<NodeFact> take() { return std::move(out_); }

 private:
  std::vector<NodeFact> out_;
};

}  // namespace

std::vector<NodeFact> nodeFacts(const Node& node) {
  const Tree& tree = node.tree;
  CardRows table;
  table.row("host", node.live.hostname);
  table.row("system", valueIn(tree.read("/etc/os-release").text, "PRETTY_NAME", '='));
  table.row("kernel", node.live.kernel);
  table.row("kernel command line", tree.line("/proc/cmdline"));
  table.row("processors", processors(tree));
  const std::size_t nodes = host::numaNodes(tree).numbers.size();
  table.row("NUMA nodes", nodes == 0 ? "" : std::to_string(nodes));
  table.row("memory", memory(tree));
  table.row("GPUs", gpus(tree));
  const std::string driver = tree.line("/proc/driver/nvidia/version");
  table.row("GPU driver", driver.empty() ? "none" : driver);
  const auto devices = rdmaDevices(tree);
  if (devices.empty()) table.row("RDMA devices", "none");
  for (const RdmaDevice& device : devices) table.row("RDMA device", describe(device));
  for (const std::string& name : tree.list("/sys/class/net"))
    if (name != "lo" && tree.has("/sys/class/net/" + name + "/mtu"))
      table.row("interface", describeInterface(node, name));
  for (const Live::Library& library : node.live.libraries)
    table.row(library.name, library.path + (library.version.empty() ? "" : ", ") + library.version);
  table.row("locked memory", lockedMemory(tree));
  return table.take();
}

std::string nodeCard(const Node& node) {
  std::string out = "| item | value |\n|---|---|\n";
  for (const NodeFact& fact : nodeFacts(node))
    out += fmt::format("| {} | {} |\n", fact.item, fact.value);
  return out;
}

}  // namespace viaduct::diag
