#include "diag/node_testing.h"

#include <fmt/format.h>

#include <filesystem>

#include "diag/live.h"

namespace viaduct::diag::testing {

namespace fs = std::filesystem;

fs::path NodeFolder::parent() {
  return viaduct::testing::folderInMemory(std::uintmax_t{128} << 20U);
}

NodeFolder::NodeFolder() {
  write("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro");
  write("/proc/meminfo",
        "MemTotal:       2113378304 kB\nMemFree:        1900000000 kB\n"
        "MemAvailable:   1950000000 kB\nHugePages_Total:       0\nHugePages_Free:        0\n"
        "Hugepagesize:       2048 kB");
  write("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max locked memory         unlimited            unlimited            bytes     \n"
        "Max open files            1048576              1048576              files     ");
  write("/proc/self/status",
        "Name:\tviaduct\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0");
  write("/proc/self/cgroup", "0::/");
  write("/sys/devices/system/cpu/online", "0-191");
  live = {.hostname = "node-1",
          .kernel = "6.8.0-1021",
          .machine = "x86_64",
          .uid = 0,
          .copy = Tried{.ok = true},
          .io_uring = Tried{.ok = true},
          .shm_bytes = std::uint64_t{64} << 30U,
          .shm_free = std::uint64_t{64} << 30U,
          .clock = Tried{.ok = true},
          .seconds = 1};
}

void NodeFolder::write(const std::string& path, const std::string& text) const {
  remove(path);
  folder_.write(path, text + "\n");
}

void NodeFolder::link(const std::string& path, const std::string& target) const {
  remove(path);
  const fs::path at = root() + path;
  fs::create_directories(at.parent_path());
  fs::create_symlink(target, at);
}

void NodeFolder::remove(const std::string& path) const {
  const std::string at = root() + path;
  if (memory_ == nullptr) {
    fs::remove_all(at);
    return;
  }
  Change change{.path = path};
  if (fs::exists(fs::symlink_status(at))) {
    change.aside = fmt::format("{}/{}", memory_->aside.path(), memory_->changes.size());
    fs::rename(at, change.aside);
  }
  memory_->changes.push_back(std::move(change));
}

void NodeFolder::remember() {
  memory_ = std::make_unique<Memory>();
  memory_->variables = variables;
  memory_->live = live;
  memory_->uverbs = uverbs_;
}

void NodeFolder::restore() {
  const auto memory = std::move(memory_);
  for (auto change = memory->changes.rbegin(); change != memory->changes.rend(); ++change) {
    remove(change->path);
    if (!change->aside.empty()) fs::rename(change->aside, root() + change->path);
  }
  variables = memory->variables;
  live = memory->live;
  uverbs_ = memory->uverbs;
}

void NodeFolder::addPci(const PciParts& parts) const {
  std::string at = "/sys/devices/" + parts.bridge;
  const auto put = [&](const std::string& address, bool bridge) {
    at += "/" + address;
    if (bridge && fs::exists(root() + at + "/class")) return;
    write(at + "/vendor", bridge ? "0x1000" : parts.vendor);
    write(at + "/device", bridge ? "0xc010" : parts.device);
    write(at + "/class", bridge ? "0x060400" : parts.kind);
    write(at + "/current_link_speed", parts.speed);
    write(at + "/current_link_width", parts.width);
    write(at + "/max_link_speed", parts.most_speed.empty() ? parts.speed : parts.most_speed);
    write(at + "/max_link_width", parts.most_width.empty() ? parts.width : parts.most_width);
    write(at + "/numa_node", std::to_string(parts.numa));
    link("/sys/bus/pci/devices/" + address, at);
  };
  for (const std::string& bridge : parts.above) put(bridge, true);
  put(parts.address, false);
  if (parts.group >= 0) {
    const std::string group = fmt::format("/sys/kernel/iommu_groups/{}", parts.group);
    write(group + "/type", parts.group_type);
    link(group + "/devices/" + parts.address, at);
    link(at + "/iommu_group", group);
  }
  if (!parts.physical.empty()) {
    link(at + "/physfn", "/sys/bus/pci/devices/" + parts.physical);
    int number = 0;
    const std::string of = "/sys/bus/pci/devices/" + parts.physical;
    const auto owner = fs::path(root()) / fs::relative(fs::read_symlink(root() + of), "/");
    while (fs::is_symlink(fs::symlink_status(owner / fmt::format("virtfn{}", number)))) ++number;
    fs::create_symlink(at, owner / fmt::format("virtfn{}", number));
  }
}

void NodeFolder::addRdma(const RdmaParts& parts) {
  const std::string pci =
      parts.pci.empty() ? "/sys/devices/virtual"
                        : fs::read_symlink(root() + "/sys/bus/pci/devices/" + parts.pci).string();
  const std::string at = pci + "/infiniband/" + parts.name, port = at + "/ports/1";
  link("/sys/class/infiniband/" + parts.name, at);
  link(at + "/device", pci);
  write(at + "/node_type", parts.node_type);
  write(at + "/fw_ver", parts.firmware);
  write(at + "/hca_type", parts.type);
  write(at + "/board_id", parts.board);
  write(at + "/node_guid", "a088:c203:00ab:1234");
  write(port + "/state", parts.state);
  write(port + "/phys_state", parts.phys_state);
  write(port + "/rate", parts.rate);
  write(port + "/link_layer", parts.link_layer);
  write(port + "/lid", parts.lid);
  write(port + "/sm_lid", parts.sm_lid);
  write(port + "/pkeys/0", "0xffff");
  for (std::size_t i = 0; i < parts.gids.size(); ++i) {
    write(fmt::format("{}/gids/{}", port, i), parts.gids[i].gid);
    write(fmt::format("{}/gid_attrs/types/{}", port, i), parts.gids[i].type);
    if (!parts.gids[i].interface.empty())
      write(fmt::format("{}/gid_attrs/ndevs/{}", port, i), parts.gids[i].interface);
  }
  const int number = parts.uverbs >= 0 ? parts.uverbs : uverbs_;
  uverbs_ = std::max(uverbs_, number) + 1;
  const std::string uverbs = fmt::format("/sys/class/infiniband_verbs/uverbs{}", number);
  write(uverbs + "/ibdev", parts.name);
  write(uverbs + "/dev", fmt::format("231:{}", 192 + number));
  // A plain file, because only root can make device files; checks look only at its presence.
  write(fmt::format("/dev/infiniband/uverbs{}", number), "");
}

void NodeFolder::addInterface(const InterfaceParts& parts) {
  const std::string pci =
      parts.pci.empty() ? "/sys/devices/virtual"
                        : fs::read_symlink(root() + "/sys/bus/pci/devices/" + parts.pci).string();
  const std::string at = pci + "/net/" + parts.name;
  link("/sys/class/net/" + parts.name, at);
  if (!parts.pci.empty()) link(at + "/device", pci);
  write(at + "/operstate", parts.state);
  write(at + "/carrier", parts.state == "up" ? "1" : "0");
  write(at + "/carrier_changes", "2");
  write(at + "/mtu", parts.mtu);
  write(at + "/type", "1");
  if (!parts.speed.empty()) write(at + "/speed", parts.speed);
  for (const std::string& address : parts.addresses)
    live.addresses.push_back({.interface = parts.name, .address = address, .prefix = 24});
}

Node NodeFolder::node() const {
  std::string why;
  auto tree = Tree::open(root(), why);
  if (!tree) ADD_FAILURE() << root() << ": " << why;
  return {.tree = std::move(*tree),
          .variables = variables,
          .variables_from = "this process",
          .live = live};
}

void NodeFolder::save() const {
  std::string environ;
  for (const auto& [name, value] : variables) environ += name + "=" + value + '\0';
  folder_.write("/viaduct/environ", environ);
  folder_.write("/viaduct/live.json", base::dumpJson(asJson(live), 1));
}

}  // namespace viaduct::diag::testing
