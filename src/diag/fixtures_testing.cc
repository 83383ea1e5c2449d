#include "diag/fixtures_testing.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace viaduct::diag::testing {
namespace {

constexpr auto kGen4 = "16.0 GT/s PCIe", kGen5 = "32.0 GT/s PCIe";
constexpr auto kDriver = "580.95.05";

// ---- The kernel, the processors, and the process.

struct Machine {
  std::string hostname = {}, kernel = {}, machine = "x86_64";
  std::string vendor = {}, product = {};  // of the system's firmware
  unsigned processors = 192, numa_nodes = 2;
  std::uint64_t gibibytes = 2048;
  std::string governor = {};  // empty: the kernel does not control the frequency
  std::string processor = "AMD EPYC 7R13 Processor";
};

std::string cpuinfo(const Machine& machine) {
  std::string out;
  for (unsigned i = 0; i < machine.processors; ++i)
    out +=
        machine.machine == "aarch64"
            ? fmt::format(
                  "processor\t: {}\nFeatures\t: fp asimd atomics sve sve2\n"
                  "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n",
                  i)
            : fmt::format("processor\t: {}\nmodel name\t: {}\nflags\t\t: fpu sse2 avx2 avx512f\n\n",
                          i, machine.processor);
  return out;
}

void addProcessors(NodeFolder& folder, const Machine& machine) {
  folder.write("/proc/cpuinfo", cpuinfo(machine));
  const std::string all = fmt::format("0-{}", machine.processors - 1);
  folder.write("/sys/devices/system/cpu/online", all);
  folder.write("/sys/devices/system/cpu/possible", all);
  const unsigned each = machine.processors / machine.numa_nodes;
  for (unsigned node = 0; node < machine.numa_nodes; ++node)
    folder.write(fmt::format("/sys/devices/system/node/node{}/cpulist", node),
                 fmt::format("{}-{}", node * each, (node + 1) * each - 1));
  if (machine.governor.empty()) return;
  for (unsigned i = 0; i < machine.processors; ++i)
    folder.write(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", i),
                 machine.governor);
}

// Formats follow proc(5), and Documentation/admin-guide/mm/hugetlbpage.rst of the kernel.
void addMemory(NodeFolder& folder, std::uint64_t gibibytes) {
  const std::uint64_t kib = gibibytes << 20U;
  folder.write("/proc/meminfo",
               fmt::format("MemTotal:       {} kB\nMemFree:        {} kB\nMemAvailable:   {} kB\n"
                           "HugePages_Total:       0\nHugePages_Free:        0\n"
                           "Hugepagesize:       2048 kB",
                           kib, kib / 10 * 8, kib / 10 * 9));
  const std::string pages = "/sys/kernel/mm/hugepages/hugepages-2048kB";
  folder.write(pages + "/nr_hugepages", "0");
  folder.write(pages + "/free_hugepages", "0");
  folder.write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
}

// The format follows proc(5), "/proc/pid/limits".
void setLimits(NodeFolder& folder, const std::string& memlock, const std::string& files) {
  const auto row = [](const char* name, const std::string& value, const char* unit) {
    return fmt::format("{:<26}{:<21}{:<21}{:<10}\n", name, value, value, unit);
  };
  folder.write(
      "/proc/self/limits",
      fmt::format("{:<26}{:<21}{:<21}{:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units") +
          row("Max stack size", "8388608", "bytes") + row("Max processes", "8245690", "processes") +
          row("Max open files", files, "files") + row("Max locked memory", memlock, "bytes") +
          row("Max address space", "unlimited", "bytes"));
}

void setUser(NodeFolder& folder, std::uint32_t uid, const std::string& effective,
             const std::string& bounding, int seccomp) {
  folder.live.uid = uid;
  folder.write("/proc/self/status",
               fmt::format("Name:\tviaduct\nUid:\t{0}\t{0}\t{0}\t{0}\nGid:\t{0}\t{0}\t{0}\t{0}\n"
                           "CapInh:\t0000000000000000\nCapPrm:\t{1}\nCapEff:\t{1}\nCapBnd:\t{2}\n"
                           "NoNewPrivs:\t0\nSeccomp:\t{3}",
                           uid, effective, bounding, seccomp));
}

// The format follows Documentation/admin-guide/cgroup-v2.rst of the kernel.
void addCgroup(NodeFolder& folder, const Machine& machine) {
  folder.write("/proc/self/cgroup", "0::/");
  const std::string group = "/sys/fs/cgroup/";
  folder.write(group + "cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc");
  folder.write(group + "memory.max", "max");
  folder.write(group + "memory.current", "1073741824");
  folder.write(group + "cpu.max", "max 100000");
  folder.write(group + "cpuset.cpus.effective", fmt::format("0-{}", machine.processors - 1));
  folder.write(group + "hugetlb.2MB.max", "max");
  folder.write(group + "pids.max", "max");
}

void addMachine(NodeFolder& folder, const Machine& machine) {
  folder.live.hostname = machine.hostname;
  folder.live.kernel = machine.kernel;
  folder.live.machine = machine.machine;
  folder.live.ipc_namespace = 0xefffffff;  // the numbers of the kernel's first namespaces
  folder.live.pid_namespace = 0xeffffffc;
  folder.write("/proc/sys/kernel/osrelease", machine.kernel);
  folder.write("/proc/sys/kernel/hostname", machine.hostname);
  folder.write("/proc/sys/kernel/io_uring_disabled", "0");
  folder.write("/proc/sys/kernel/dmesg_restrict", "0");
  folder.write("/sys/devices/virtual/dmi/id/sys_vendor", machine.vendor);
  folder.write("/sys/devices/virtual/dmi/id/product_name", machine.product);
  folder.link("/sys/class/dmi/id", "/sys/devices/virtual/dmi/id");
  folder.write("/sys/class/net/lo/operstate", "unknown");
  folder.write("/sys/class/net/lo/mtu", "65536");
  folder.write("/sys/class/net/lo/type", "772");
  addProcessors(folder, machine);
  addMemory(folder, machine.gibibytes);
  setLimits(folder, "unlimited", "1048576");
  setUser(folder, 0, "000001ffffffffff", "000001ffffffffff", 0);
  addCgroup(folder, machine);
}

void enterPod(NodeFolder& folder) {
  folder.variables["KUBERNETES_SERVICE_HOST"] = "10.100.0.1";
  folder.variables["KUBERNETES_SERVICE_PORT"] = "443";
  folder.live.ipc_namespace = 4026533210;
  folder.live.pid_namespace = 4026533212;
  folder.write("/var/run/secrets/kubernetes.io/serviceaccount/namespace", "inference");
  folder.live.names["etcd.default"] = {.ok = true, .text = "10.100.41.7"};
}

void setKernelLog(NodeFolder& folder, const std::string& text) {
  folder.live.kernel_log = Tried{.ok = true, .text = text};
}

// ---- PCI. Addresses of switches are invented, because no document gives them for these machines.

void addBridge(NodeFolder& folder, const std::string& bridge, std::vector<std::string> above,
               const std::string& address, int numa, const std::string& speed = kGen5) {
  folder.addPci({.address = address,
                 .bridge = bridge,
                 .above = std::move(above),
                 .vendor = "0x1000",
                 .device = "0xc030",
                 .kind = "0x060400",
                 .speed = speed,
                 .numa = numa});
}

// A root port, a switch below it, and a port of the switch for each device.
struct Switch {
  std::string bridge;  // "pci0000:44"
  std::string root_port, upstream;
  std::string domain;
  unsigned bus = 0;  // of the root port; the switch takes the next two
  int numa = 0;
};

Switch addSwitch(NodeFolder& folder, const std::string& domain, unsigned bus, int numa) {
  Switch out{.bridge = fmt::format("pci{}:{:02x}", domain, bus),
             .root_port = fmt::format("{}:{:02x}:01.0", domain, bus),
             .upstream = fmt::format("{}:{:02x}:00.0", domain, bus + 1),
             .domain = domain,
             .bus = bus,
             .numa = numa};
  addBridge(folder, out.bridge, {}, out.root_port, numa);
  addBridge(folder, out.bridge, {out.root_port}, out.upstream, numa);
  return out;
}

// The functions from the root port to a device at port `number` of the switch.
std::vector<std::string> below(NodeFolder& folder, const Switch& above, unsigned number) {
  const std::string port = fmt::format("{}:{:02x}:{:02x}.0", above.domain, above.bus + 2, number);
  addBridge(folder, above.bridge, {above.root_port, above.upstream}, port, above.numa);
  return {above.root_port, above.upstream, port};
}

// The format follows Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats of the kernel.
void addErrorTotals(NodeFolder& folder, const std::string& address) {
  const std::string at = "/sys/bus/pci/devices/" + address;
  const std::string folder_of = std::filesystem::read_symlink(folder.root() + at).string();
  folder.write(folder_of + "/aer_dev_correctable",
               "RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\n"
               "CorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 0");
  folder.write(folder_of + "/aer_dev_nonfatal", "Undefined 0\nDLP 0\nSDES 0\nTOTAL_ERR_NONFATAL 0");
  folder.write(folder_of + "/aer_dev_fatal", "Undefined 0\nDLP 0\nSDES 0\nTOTAL_ERR_FATAL 0");
}

void addFunction(NodeFolder& folder, const PciParts& parts) {
  folder.addPci(parts);
  if (parts.physical.empty()) addErrorTotals(folder, parts.address);
}

// ---- GPUs.

// The format follows /proc/driver/nvidia of the open kernel module. An idle GPU's link is at 2.5
// GT/s.
void addGpuDriver(NodeFolder& folder) {
  const std::string architecture = folder.live.machine == "aarch64" ? "aarch64" : "x86_64";
  folder.write("/proc/driver/nvidia/version",
               fmt::format("NVRM version: NVIDIA UNIX Open Kernel Module for {}  {}  Release Build"
                           "  (dvs-builder@U22-I3-B03-02)  Tue Sep 23 10:02:12 UTC 2025\n"
                           "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)",
                           architecture, kDriver));
  folder.write("/sys/module/nvidia/version", kDriver);
  folder.write("/sys/module/nvidia/initstate", "live");
  folder.write("/sys/module/nvidia_uvm/initstate", "live");
  folder.write("/sys/module/gdrdrv/version", "2.5.1");
  folder.write("/dev/gdrdrv", "");
  for (const char* name : {"/dev/nvidiactl", "/dev/nvidia-uvm"}) folder.write(name, "");
  folder.live.libraries.push_back(
      {"libcuda.so.1", fmt::format("/usr/lib/{}-linux-gnu/libcuda.so.1", architecture), kDriver});
}

void addPeerMemory(NodeFolder& folder) {
  folder.write("/sys/module/nvidia_peermem/version", kDriver);
  folder.write("/sys/module/nvidia_peermem/initstate", "live");
}

void addGpu(NodeFolder& folder, PciParts parts, const std::string& model, unsigned minor) {
  parts.vendor = "0x10de";
  parts.kind = "0x030200";
  parts.speed = "2.5 GT/s PCIe";
  parts.most_speed = kGen5;
  addFunction(folder, parts);
  folder.write(fmt::format("/proc/driver/nvidia/gpus/{}/information", parts.address),
               fmt::format("Model: \t\t {}\nIRQ:   \t\t {}\n"
                           "GPU UUID: \t GPU-7c2e1f04-5b0d-4a51-9d0e-0000000000{:02x}\n"
                           "Bus Type: \t PCIe\nDMA Size: \t 52 bits\nBus Location: \t {}\n"
                           "Device Minor: \t {}\nGPU Firmware: \t {}\nGPU Excluded:\t No",
                           model, 300 + minor, minor, parts.address, minor, kDriver));
  folder.write(fmt::format("/dev/nvidia{}", minor), "");
}

// ---- Networks.

// The format follows net/ipv4/fib_trie.c of the kernel: addresses as hexadecimal numbers of this
// machine.
std::string routeAddress(const std::string& address) {
  std::array<unsigned, 4> bytes{};
  if (std::sscanf(address.c_str(), "%u.%u.%u.%u", &bytes[0], &bytes[1], &bytes[2], &bytes[3]) != 4)
    ADD_FAILURE() << address;
  return fmt::format("{:02X}{:02X}{:02X}{:02X}", bytes[3], bytes[2], bytes[1], bytes[0]);
}

// Routes: a subnet for each address, and the default route over the first interface.
void addRoutes(NodeFolder& folder, const std::string& gateway) {
  std::string out =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
  out += fmt::format("{}\t00000000\t{}\t0003\t0\t0\t100\t00000000\t0\t0\t0\n",
                     folder.live.addresses.at(0).interface, routeAddress(gateway));
  for (const InterfaceAddress& one : folder.live.addresses)
    out += fmt::format("{}\t{}\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n", one.interface,
                       routeAddress(one.address.substr(0, one.address.rfind('.')) + ".0"));
  folder.write("/proc/net/route", out);
}

void addInterface(NodeFolder& folder, const InterfaceParts& parts) {
  folder.addInterface(parts);
  for (const std::string& of : {std::string("all"), std::string("default"), parts.name})
    for (const char* name : {"rp_filter", "arp_ignore", "arp_announce"})
      folder.write(fmt::format("/proc/sys/net/ipv4/conf/{}/{}", of, name), "0");
}

// ---- RDMA devices.

void writeAll(NodeFolder& folder, const std::string& at, std::initializer_list<const char*> names,
              const char* value) {
  for (const char* name : names) folder.write(at + "/" + name, value);
}

// The target of the kernel's link, because a write does not follow links.
std::string placeOf(NodeFolder& folder, const std::string& link) {
  return std::filesystem::read_symlink(folder.root() + link).string();
}

// Counter names follow Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst
// and Documentation/ABI/stable/sysfs-class-infiniband of the kernel. A virtual function of RoCE has
// no performance agent for the counters of its port.
void addMlx5Counters(NodeFolder& folder, const std::string& device, bool virtual_function) {
  const std::string at = placeOf(folder, "/sys/class/infiniband/" + device) + "/ports/1";
  const char* const zero = virtual_function ? "N/A (no PMA)" : "0";
  const char* const some = virtual_function ? "N/A (no PMA)" : "81923412310";
  writeAll(folder, at + "/counters",
           {"symbol_error", "link_error_recovery", "port_rcv_errors",
            "port_rcv_remote_physical_errors", "port_xmit_discards", "port_xmit_wait",
            "VL15_dropped", "local_link_integrity_errors", "excessive_buffer_overrun_errors"},
           zero);
  writeAll(folder, at + "/counters", {"port_xmit_data", "port_rcv_data"}, some);
  // A switch has restarted once since this node's boot.
  folder.write(at + "/counters/link_downed", virtual_function ? "N/A (no PMA)" : "1");
  writeAll(folder, at + "/hw_counters",
           {"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err",
            "duplicate_request", "implied_nak_seq_err", "out_of_buffer", "req_cqe_error",
            "resp_cqe_error", "resp_local_length_error", "resp_remote_access_errors",
            "req_remote_access_errors", "roce_adp_retrans", "roce_slow_restart", "rp_cnp_ignored",
            "rx_icrc_encapsulated"},
           "0");
  writeAll(folder, at + "/hw_counters",
           {"np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rx_read_requests",
            "rx_write_requests"},
           "120417");
  folder.write(at + "/hw_counters/lifespan", "10");
}

void addRdmaModules(NodeFolder& folder) {
  for (const char* name : {"ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm"})
    folder.write(fmt::format("/sys/module/{}/initstate", name), "live");
  folder.write("/sys/module/ib_core/parameters/netns_mode", "Y");
  folder.write("/dev/infiniband/rdma_cm", "");
  folder.live.libraries.push_back(
      {"libibverbs.so.1", "/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "59.0"});
  folder.live.libraries.push_back(
      {"libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "2.28.3"});
}

void addMlx5Modules(NodeFolder& folder) {
  addRdmaModules(folder);
  for (const char* name : {"mlx5_core", "mlx5_ib"})
    folder.write(fmt::format("/sys/module/{}/initstate", name), "live");
  folder.write("/sys/module/mlx5_core/version", "25.07-0.9.7");
  folder.live.libraries.push_back(
      {"libucp.so.0", "/usr/lib/x86_64-linux-gnu/libucp.so.0", "1.20.0"});
}

// The usual GID table of a RoCE device: link-local and IPv4, each as v1 and v2.
std::vector<GidParts> roceGids(const std::string& interface, const std::string& address) {
  std::array<unsigned, 4> bytes{};
  if (std::sscanf(address.c_str(), "%u.%u.%u.%u", &bytes[0], &bytes[1], &bytes[2], &bytes[3]) != 4)
    ADD_FAILURE() << address;
  const std::string local = fmt::format("fe80:0000:0000:0000:a288:c2ff:fe{:02x}:{:02x}{:02x}",
                                        bytes[1], bytes[2], bytes[3]);
  const std::string global = fmt::format("0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}",
                                         bytes[0], bytes[1], bytes[2], bytes[3]);
  return {{local, "IB/RoCE v1", interface},
          {local, "RoCE v2", interface},
          {global, "IB/RoCE v1", interface},
          {global, "RoCE v2", interface}};
}

// Adds the empty entries of the table, whose types the kernel refuses to show.
void addEmptyGids(NodeFolder& folder, const std::string& device, std::size_t first) {
  const std::string at = placeOf(folder, "/sys/class/infiniband/" + device) + "/ports/1/gids/";
  for (std::size_t i = first; i < 8; ++i)
    folder.write(at + std::to_string(i), "0000:0000:0000:0000:0000:0000:0000:0000");
}

// ---- EFA.

// Names follow the efa driver r3.1.0 and its README. EFA firmware has no version number.
void addEfa(NodeFolder& folder, PciParts parts, const std::string& rate) {
  parts.vendor = "0x1d0f";
  parts.device = "0xefa2";
  parts.kind = "0x020000";
  addFunction(folder, parts);
  const auto bus = std::strtoul(parts.address.substr(5, 2).c_str(), nullptr, 16);
  const std::string name = fmt::format("rdmap{}s0", bus);
  folder.addRdma({.name = name,
                  .pci = parts.address,
                  .rate = rate,
                  .link_layer = "Unknown",
                  .lid = "0x0",
                  .sm_lid = "0x0",
                  .firmware = "0.0.0.0",
                  .node_type = "7: unspecified",
                  .gids = {{fmt::format("fe80:0000:0000:0000:0c{:02x}:2bff:fe51:9d07", bus),
                            "IB/RoCE v1", ""}}});
  const std::string at = placeOf(folder, "/sys/class/infiniband/" + name);
  folder.remove(at + "/hca_type");
  folder.remove(at + "/board_id");
  folder.write(placeOf(folder, "/sys/bus/pci/devices/" + parts.address) + "/p2p", "NVIDIA");
  writeAll(folder, at + "/ports/1/hw_counters",
           {"rx_drops", "rdma_read_wr_err", "rdma_write_wr_err", "retrans_timeout_events",
            "unresponsive_remote_events", "impaired_remote_conn_events"},
           "0");
  writeAll(folder, at + "/ports/1/hw_counters",
           {"tx_bytes", "tx_pkts", "rx_bytes", "rx_pkts", "send_bytes", "send_wrs", "recv_bytes",
            "recv_wrs", "rdma_read_wrs", "rdma_read_bytes", "rdma_read_resp_bytes",
            "rdma_write_wrs", "rdma_write_bytes", "rdma_write_recv_bytes"},
           "731902881");
  writeAll(folder, at + "/ports/1/hw_counters", {"retrans_bytes", "retrans_pkts"}, "17");
  writeAll(folder, at + "/hw_counters",
           {"cmds_err", "no_completion_cmds", "alloc_pd_err", "create_qp_err", "create_cq_err",
            "reg_mr_err", "alloc_ucontext_err", "create_ah_err", "mmap_err"},
           "0");
  writeAll(folder, at + "/hw_counters", {"submitted_cmds", "completed_cmds", "keep_alive_rcvd"},
           "20417");
  folder.write(at + "/ports/1/hw_counters/lifespan", "10");
  folder.write(at + "/hw_counters/lifespan", "10");
}

// The common parts of instances with EFA: Amazon's interface, driver, libfabric and variables.
void addEc2Pod(NodeFolder& folder, const std::string& instance) {
  addMachine(folder, {.hostname = "prefill-0",
                      .kernel = "6.14.0-1018-aws",
                      .vendor = "Amazon EC2",
                      .product = instance});
  enterPod(folder);
  folder.write("/proc/cmdline", "BOOT_IMAGE=(hd0,gpt1)/boot/vmlinuz root=UUID=1 ro console=ttyS0");
  folder.write("/proc/sys/kernel/yama/ptrace_scope", "0");
  addRdmaModules(folder);
  folder.write("/sys/module/efa/version", "3.0.0g");
  folder.write("/sys/module/efa/initstate", "live");
  folder.live.libraries.push_back(
      {"libfabric.so.1", "/opt/amazon/efa/lib/libfabric.so.1", "2.5.1"});
  folder.variables["FI_PROVIDER"] = "efa";
  folder.variables["FI_EFA_USE_DEVICE_RDMA"] = "1";
  folder.variables["FI_EFA_ENABLE_SHM_TRANSFER"] = "0";
  folder.variables["LD_LIBRARY_PATH"] =
      "/opt/amazon/efa/lib:/opt/amazon/efa/lib64:/opt/aws-ofi-nccl/lib";
  addFunction(folder, {.address = "0000:27:00.0",
                       .bridge = "pci0000:20",
                       .above = {"0000:20:01.0"},
                       .vendor = "0x1d0f",
                       .device = "0xec20",
                       .kind = "0x020000",
                       .speed = kGen4,
                       .width = "8"});
  // A pod's interface is one end of a veth pair, not the instance's own.
  addInterface(folder, {.name = "eth0", .mtu = "9001", .addresses = {"10.1.52.17"}});
  addRoutes(folder, "10.1.52.1");
  addGpuDriver(folder);
  addPeerMemory(folder);
  setKernelLog(folder,
               "iommu: Default domain type: Passthrough (set via kernel command line)\n"
               "efa 0000:4f:00.0: Setup irq:105 name:efa-mgmnt@pci:0000:4f:00.0");
}

struct EfaLayout {
  unsigned first_bus = 0;  // of the first GPU's first device; each next GPU is 0x11 further
  unsigned per_gpu = 0;
  std::string rate, speed, width;
  std::string model, device;  // of the GPUs
};

// Each GPU comes just after its EFA devices, under the same switch. A socket has four GPUs.
void addEfaLayout(NodeFolder& folder, const EfaLayout& layout) {
  for (unsigned gpu = 0; gpu < 8; ++gpu) {
    const unsigned bus = layout.first_bus + 0x11 * gpu;
    const int numa = gpu < 4 ? 0 : 1;
    const Switch above = addSwitch(folder, "0000", bus - 0x0b, numa);
    for (unsigned i = 0; i < layout.per_gpu; ++i)
      addEfa(folder,
             {.address = fmt::format("0000:{:02x}:00.0", bus + i),
              .bridge = above.bridge,
              .above = below(folder, above, i),
              .speed = layout.speed,
              .width = layout.width,
              .numa = numa},
             layout.rate);
    addGpu(folder,
           {.address = fmt::format("0000:{:02x}:00.0", bus + layout.per_gpu),
            .bridge = above.bridge,
            .above = below(folder, above, layout.per_gpu),
            .device = layout.device,
            .numa = numa},
           layout.model, gpu);
  }
}

// Counts and rates follow AWS's list of instance types with EFA. PCI addresses follow the device
// names in aws-ofi-nccl's topology file: 4f to 52 and the GPU at 53, the next group at 60. Each
// group is 0x11 after the one before, and each EFA device has PCIe 4 x8.
void fillP5(NodeFolder& folder) {
  addEc2Pod(folder, "p5.48xlarge");
  addEfaLayout(folder, {.first_bus = 0x4f,
                        .per_gpu = 4,
                        .rate = "100 Gb/sec (4X EDR)",
                        .speed = kGen4,
                        .width = "8",
                        .model = "NVIDIA H100 80GB HBM3",
                        .device = "0x2330"});
}

// aws-ofi-nccl names the first device rdmap85s0. All other addresses follow the pattern of p5.
void fillP5en(NodeFolder& folder) {
  addEc2Pod(folder, "p5en.48xlarge");
  addEfaLayout(folder, {.first_bus = 0x55,
                        .per_gpu = 2,
                        .rate = "200 Gb/sec (4X HDR)",
                        .speed = kGen5,
                        .width = "8",
                        .model = "NVIDIA H200",
                        .device = "0x2335"});
}

// Eight EFA devices, and ibp115s0f0 and ibp116s0f0 as HyperPod shows them. The pod lacks uverbs
// nodes for these two, because the EFA device plugin does not give them. Their rate and addresses
// are invented.
void fillP6b200(NodeFolder& folder) {
  addEc2Pod(folder, "p6-b200.48xlarge");
  addEfaLayout(folder, {.first_bus = 0x4f,
                        .per_gpu = 1,
                        .rate = "400 Gb/sec (4X NDR)",
                        .speed = kGen5,
                        .width = "16",
                        .model = "NVIDIA B200",
                        .device = "0x2901"});
  for (unsigned i = 0; i < 2; ++i) {
    const std::string pci = fmt::format("0000:{:02x}:00.0", 115 + i);
    addFunction(folder, {.address = pci,
                         .bridge = "pci0000:70",
                         .above = {fmt::format("0000:70:0{}.0", i + 1)},
                         .vendor = "0x15b3",
                         .device = "0x1021",
                         .kind = "0x020700"});
    const std::string name = fmt::format("ibp{}s0f0", 115 + i);
    folder.addRdma({.name = name, .pci = pci});
    addMlx5Counters(folder, name, false);
    folder.remove(fmt::format("/dev/infiniband/uverbs{}", 8 + i));
  }
}

// ---- OpenShift.

// One rail: a port with four virtual functions, one of which this pod has.
struct Rail {
  unsigned bus;          // PCI bus of the switch
  const char* physical;  // "mlx5_0"
  std::array<const char*, 4> virtual_functions;
  const char* ours;
  const char* interface;
  const char* resource;
  const char* address;
  int numa;
};
constexpr std::array kRails{
    Rail{0x15,
         "mlx5_0",
         {"mlx5_4", "mlx5_6", "mlx5_12", "mlx5_13"},
         "mlx5_6",
         "net1",
         "ENO5NP0RDMA",
         "10.0.103.7",
         0},
    Rail{0x35,
         "mlx5_1",
         {"mlx5_5", "mlx5_7", "mlx5_14", "mlx5_15"},
         "mlx5_7",
         "net2",
         "ENO6NP0RDMA",
         "10.0.104.7",
         0},
    Rail{0x95,
         "mlx5_2",
         {"mlx5_8", "mlx5_10", "mlx5_16", "mlx5_17"},
         "mlx5_10",
         "net3",
         "ENO7NP0RDMA",
         "10.0.105.7",
         1},
    Rail{0xb5,
         "mlx5_3",
         {"mlx5_9", "mlx5_11", "mlx5_18", "mlx5_19"},
         "mlx5_11",
         "net4",
         "ENO8NP0RDMA",
         "10.0.106.7",
         1},
};

struct RoceParts {
  std::string name, pci, interface, address, rate;
  bool virtual_function = false;
};

// A function without an interface is in the network namespace of another pod or of the host.
void addRoce(NodeFolder& folder, const RoceParts& parts) {
  auto gids = roceGids(parts.interface, parts.address);
  if (parts.interface.empty()) gids.resize(2);
  folder.addRdma({.name = parts.name,
                  .pci = parts.pci,
                  .rate = parts.rate,
                  .link_layer = "Ethernet",
                  .lid = "0x0",
                  .sm_lid = "0x0",
                  .type = parts.virtual_function ? "MT4126" : "MT4129",
                  .gids = gids});
  addEmptyGids(folder, parts.name, gids.size());
  addMlx5Counters(folder, parts.name, parts.virtual_function);
  if (parts.interface.empty()) return;
  addInterface(folder, {.name = parts.interface,
                        .pci = parts.pci,
                        .mtu = "9000",
                        .speed = parts.rate.substr(0, 3) + "000",
                        .addresses = {parts.address}});
}

// The format follows pkg/infoprovider of the SR-IOV network device plugin.
void giveToPod(NodeFolder& folder, const Rail& rail, const std::string& pci, int uverbs) {
  const std::string key = std::string("PCIDEVICE_OPENSHIFT_IO_") + rail.resource;
  folder.variables[key] = pci;
  folder.variables[key + "_INFO"] =
      fmt::format(R"({{"{0}":{{"generic":{{"deviceID":"{0}"}},"rdma":{{"rdma_dev":"{1}",)"
                  R"("uverbs":"/dev/infiniband/uverbs{2}","umad":"/dev/infiniband/umad{2}",)"
                  R"("issm":"/dev/infiniband/issm{2}","rdma_cm":"/dev/infiniband/rdma_cm"}}}}}})",
                  pci, rail.ours, uverbs);
}

void addRail(NodeFolder& folder, const Rail& rail, unsigned number, const std::string& group_type) {
  const Switch above = addSwitch(folder, "0000", rail.bus, rail.numa);
  const auto nic_way = below(folder, above, 0);
  const std::string physical = fmt::format("0000:{:02x}:00.0", rail.bus + 4);
  PciParts parts{.address = physical,
                 .bridge = above.bridge,
                 .above = nic_way,
                 .vendor = "0x15b3",
                 .device = "0x1021",
                 .kind = "0x020000",
                 .numa = rail.numa,
                 .group = static_cast<int>(40 + 10 * number),
                 .group_type = group_type};
  addFunction(folder, parts);
  const std::string owner = placeOf(folder, "/sys/bus/pci/devices/" + physical);
  folder.write(owner + "/sriov_numvfs", "4");
  folder.write(owner + "/sriov_totalvfs", "16");
  addRoce(folder, {rail.physical, physical, "", "10.0.0.1", "200 Gb/sec (4X HDR)"});
  parts.device = "0x101e";
  parts.speed = "Unknown";
  parts.width = "0";
  parts.physical = physical;
  for (unsigned i = 0; i < 4; ++i) {
    parts.address = fmt::format("0000:{:02x}:00.{}", rail.bus + 4, i + 2);
    parts.group = static_cast<int>(100 + 10 * number + i);
    addFunction(folder, parts);
    const std::string name = rail.virtual_functions[i];
    const bool ours = name == rail.ours;
    const int uverbs = static_cast<int>(5 * number + 1 + i);
    addRoce(folder, {name, parts.address, ours ? rail.interface : "",
                     ours ? rail.address : "10.0.0.2", "200 Gb/sec (4X HDR)", true});
    if (ours) giveToPod(folder, rail, parts.address, uverbs);
  }
  addGpu(folder,
         {.address = fmt::format("0000:{:02x}:00.0", rail.bus + 6),
          .bridge = above.bridge,
          .above = below(folder, above, 1),
          .device = "0x2330",
          .numa = rail.numa,
          .group = static_cast<int>(41 + 10 * number),
          .group_type = group_type},
         "NVIDIA H100 80GB HBM3", number);
}

// Follows a public report of workers with AMD EPYC, H100 and four virtual functions per port: the
// names and addresses of this pod's functions, the group types, and memlock. The link layer is
// Ethernet, although the report calls it InfiniBand. Bus numbers and other pods' functions are
// invented.
void fillOpenShift(NodeFolder& folder, const std::string& group_type) {
  addMachine(folder, {.hostname = "nccl-test-0",
                      .kernel = "5.14.0-570.49.1.el9_6.x86_64",
                      .vendor = "Dell Inc.",
                      .product = "PowerEdge XE9680",
                      .governor = "performance",
                      .processor = "AMD EPYC 9454 48-Core Processor"});
  enterPod(folder);
  addInterface(folder, {.name = "eth0", .mtu = "8900", .addresses = {"10.128.8.30"}});
  addGpuDriver(folder);
  addPeerMemory(folder);
  addMlx5Modules(folder);
  for (unsigned i = 0; i < kRails.size(); ++i) addRail(folder, kRails[i], i, group_type);
  addRoutes(folder, "10.128.8.1");
}

void fillOpenShiftBefore(NodeFolder& folder) {
  fillOpenShift(folder, "DMA-FQ");
  folder.write("/proc/cmdline",
               "BOOT_IMAGE=(hd0,gpt3)/ostree/rhcos/vmlinuz ignition.platform.id=metal");
  setKernelLog(folder,
               "iommu: Default domain type: Translated\n"
               "iommu: DMA domain TLB invalidation policy: lazy mode");
  setLimits(folder, "8388608", "1048576");
  // The device plugin gives the pod the device files of its own functions only.
  for (int i = 0; i < 20; ++i) {
    const std::string node = fmt::format("/dev/infiniband/uverbs{}", i);
    bool ours = false;
    for (const auto& [key, value] : folder.variables)
      ours |= value.find(fmt::format("\"{}\"", node)) != std::string::npos;
    if (!ours) folder.remove(node);
  }
  // IPC_LOCK and SYS_ADMIN are granted, but that puts them into the bounding set only.
  setUser(folder, 1000740000, "0000000000000000", "00000000a82465fb", 2);
}

void fillOpenShiftAfter(NodeFolder& folder) {
  fillOpenShift(folder, "identity");
  folder.write("/proc/cmdline",
               "BOOT_IMAGE=(hd0,gpt3)/ostree/rhcos/vmlinuz ignition.platform.id=metal iommu=pt");
  setKernelLog(folder, "iommu: Default domain type: Passthrough (set via kernel command line)");
}

// ---- InfiniBand and RoCE without virtual functions.

void addInfiniband(NodeFolder& folder, const std::string& name, const std::string& pci,
                   const std::string& interface, unsigned lid) {
  folder.addRdma({.name = name,
                  .pci = pci,
                  .lid = fmt::format("{:#x}", lid),
                  .gids = {{fmt::format("fe80:0000:0000:0000:a088:c203:00ab:{:04x}", lid),
                            "IB/RoCE v1", ""}}});
  addEmptyGids(folder, name, 1);
  addMlx5Counters(folder, name, false);
  // The node does not use IPoIB, so this interface is down.
  folder.addInterface({.name = interface, .pci = pci, .state = "down", .mtu = "2044"});
  folder.write(placeOf(folder, "/sys/class/net/" + interface) + "/type", "32");
}

// ND H100 v5. Names: Azure's persistent naming of RDMA devices. mlx5_an0 is the Ethernet device of
// accelerated networking. Hyper-V gives each function its own PCI domain, without the bridges above
// it.
void fillAksNd(NodeFolder& folder) {
  addMachine(folder, {.hostname = "decode-0",
                      .kernel = "5.15.0-1098-azure",
                      .vendor = "Microsoft Corporation",
                      .product = "Virtual Machine",
                      .processors = 96,
                      .gibibytes = 1900,
                      .processor = "Intel(R) Xeon(R) Platinum 8480C"});
  enterPod(folder);
  folder.write("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=PARTUUID=1 ro console=ttyS0");
  folder.write("/proc/sys/kernel/yama/ptrace_scope", "1");
  folder.variables["UCX_IB_ADDR_TYPE"] = "eth";
  addInterface(folder, {.name = "eth0", .addresses = {"10.244.3.12"}});
  addRoutes(folder, "10.244.3.1");
  addGpuDriver(folder);
  addPeerMemory(folder);
  addMlx5Modules(folder);
  for (unsigned i = 0; i < 8; ++i) {
    const std::string domain = fmt::format("{:04x}", 0x101 + i);
    addFunction(folder, {.address = domain + ":00:00.0",
                         .bridge = "pci" + domain + ":00",
                         .vendor = "0x15b3",
                         .device = "0x101e",
                         .kind = "0x020700",
                         .numa = i < 4 ? 0 : 1});
    addInfiniband(folder, fmt::format("mlx5_ib{}", i), domain + ":00:00.0", fmt::format("ib{}", i),
                  0x1a4 + i);
    const std::string gpu = fmt::format("{:04x}", 1 + i);
    addGpu(folder,
           {.address = gpu + ":00:00.0",
            .bridge = "pci" + gpu + ":00",
            .device = "0x2330",
            .numa = i < 4 ? 0 : 1},
           "NVIDIA H100 80GB HBM3", i);
  }
  addFunction(folder, {.address = "0200:00:02.0",
                       .bridge = "pci0200:00",
                       .vendor = "0x15b3",
                       .device = "0x101a",
                       .kind = "0x020000",
                       .speed = "Unknown",
                       .width = "0"});
  addRoce(folder, {"mlx5_an0", "0200:00:02.0", "", "10.0.0.3", "100 Gb/sec (4X EDR)", true});
  setKernelLog(folder, "hv_vmbus: Vmbus version:5.3");
}

// Eight GPUs and eight ConnectX-7 as in the usual server with two sockets: each pair is below one
// switch, each rail has a subnet, and frames are jumbo. The GID order is Juniper's listing for
// RoCE.
void fillRoceNode(NodeFolder& folder) {
  addMachine(folder, {.hostname = "gpu-node-1",
                      .kernel = "6.8.0-85-generic",
                      .vendor = "Supermicro",
                      .product = "SYS-821GE-TNHR",
                      .processors = 112,
                      .governor = "performance",
                      .processor = "Intel(R) Xeon(R) Platinum 8480+"});
  folder.write("/proc/cmdline",
               "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro intel_iommu=on iommu=pt");
  folder.write("/proc/sys/kernel/yama/ptrace_scope", "1");
  addFunction(folder, {.address = "0000:04:00.0",
                       .bridge = "pci0000:00",
                       .above = {"0000:00:1c.0"},
                       .vendor = "0x14e4",
                       .device = "0x16d8",
                       .kind = "0x020000",
                       .speed = "8.0 GT/s PCIe",
                       .width = "8",
                       .group = 12,
                       .group_type = "identity"});
  addInterface(
      folder,
      {.name = "eno1", .pci = "0000:04:00.0", .speed = "10000", .addresses = {"192.168.7.21"}});
  addGpuDriver(folder);
  addPeerMemory(folder);
  addMlx5Modules(folder);
  for (unsigned i = 0; i < 8; ++i) {
    const int numa = i < 4 ? 0 : 1;
    const unsigned bus = 0x15 + 0x1c * i;
    const Switch above = addSwitch(folder, "0000", bus, numa);
    const std::string nic = fmt::format("0000:{:02x}:00.0", bus + 3);
    addFunction(folder, {.address = nic,
                         .bridge = above.bridge,
                         .above = below(folder, above, 0),
                         .vendor = "0x15b3",
                         .device = "0x1021",
                         .kind = "0x020000",
                         .numa = numa,
                         .group = static_cast<int>(20 + 2 * i),
                         .group_type = "identity"});
    addRoce(folder, {fmt::format("mlx5_{}", i), nic, fmt::format("rail{}", i),
                     fmt::format("10.0.{}.21", 100 + i), "400 Gb/sec (4X NDR)"});
    addGpu(folder,
           {.address = fmt::format("0000:{:02x}:00.0", bus + 4),
            .bridge = above.bridge,
            .above = below(folder, above, 1),
            .device = "0x2330",
            .numa = numa,
            .group = static_cast<int>(21 + 2 * i),
            .group_type = "identity"},
           "NVIDIA H100 80GB HBM3", i);
  }
  // The board's four NVSwitches.
  for (unsigned i = 0; i < 4; ++i)
    addFunction(folder, {.address = fmt::format("0000:{:02x}:00.0", 5 + i),
                         .bridge = "pci0000:00",
                         .above = {fmt::format("0000:00:1d.{}", i)},
                         .vendor = "0x10de",
                         .device = "0x22a3",
                         .kind = "0x068000",
                         .width = "2"});
  addRoutes(folder, "192.168.7.1");
  setKernelLog(folder,
               "DMAR: IOMMU enabled\n"
               "iommu: Default domain type: Passthrough (set via kernel command line)");
}

// Two Grace processors, four Blackwell GPUs, and a ConnectX-7 for each GPU. The domains are those
// of an NVL72 compute tray, as its users list them. Pages have 64 KiB, and arm64 needs
// iommu.passthrough.
void fillGb200(NodeFolder& folder) {
  addMachine(folder, {.hostname = "tray-7",
                      .kernel = "6.11.0-1011-nvidia-64k",
                      .machine = "aarch64",
                      .vendor = "NVIDIA",
                      .product = "GB200 NVL",
                      .processors = 144,
                      .gibibytes = 960,
                      .governor = "performance"});
  folder.write("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=UUID=1 ro iommu.passthrough=1");
  folder.write("/proc/sys/kernel/yama/ptrace_scope", "1");
  folder.write("/proc/devices", "Character devices:\n195 nvidia\n234 nvidia-caps-imex-channels");
  folder.write("/dev/nvidia-caps-imex-channels/channel0", "");
  addInterface(folder, {.name = "enP5p9s0", .addresses = {"192.168.9.107"}});
  addRoutes(folder, "192.168.9.1");
  addGpuDriver(folder);
  addMlx5Modules(folder);
  const std::array<const char*, 4> nics{"0000", "0002", "0010", "0012"};
  const std::array<const char*, 4> gpus{"0008", "0009", "0018", "0019"};
  for (unsigned i = 0; i < 4; ++i) {
    const int numa = i < 2 ? 0 : 1;
    const std::string nic = nics[i], gpu = gpus[i];
    addFunction(folder, {.address = nic + ":03:00.0",
                         .bridge = "pci" + nic + ":00",
                         .above = {nic + ":00:00.0"},
                         .vendor = "0x15b3",
                         .device = "0x1021",
                         .kind = "0x020700",
                         .numa = numa,
                         .group = static_cast<int>(10 + i),
                         .group_type = "identity"});
    addInfiniband(folder, fmt::format("mlx5_{}", i), nic + ":03:00.0", fmt::format("ibp{}s0", i),
                  0x40 + i);
    addBridge(folder, "pci" + gpu + ":00", {}, gpu + ":00:00.0", numa);
    addGpu(folder,
           {.address = gpu + ":01:00.0",
            .bridge = "pci" + gpu + ":00",
            .above = {gpu + ":00:00.0"},
            .device = "0x2941",
            .numa = numa,
            .group = static_cast<int>(20 + i),
            .group_type = "identity"},
           "NVIDIA GB200", i);
  }
  setKernelLog(folder, "iommu: Default domain type: Passthrough (set via kernel command line)");
}

// ---- Machines without RDMA.

// The defaults of a desktop distribution. A translating IOMMU, 8 MiB of memlock and the powersave
// governor do no harm here.
void fillLaptop(NodeFolder& folder) {
  addMachine(folder, {.hostname = "laptop",
                      .kernel = "6.8.0-85-generic",
                      .vendor = "LENOVO",
                      .product = "21HMCTO1WW",
                      .processors = 16,
                      .numa_nodes = 1,
                      .gibibytes = 32,
                      .governor = "powersave",
                      .processor = "13th Gen Intel(R) Core(TM) i7-1360P"});
  setLimits(folder, "8388608", "1048576");
  setUser(folder, 1000, "0000000000000000", "000001ffffffffff", 0);
  folder.write("/proc/sys/kernel/yama/ptrace_scope", "1");
  folder.write("/proc/sys/kernel/dmesg_restrict", "1");
  folder.live.kernel_log = Tried{.ok = false, .text = "Operation not permitted"};
  folder.live.shm_bytes = std::uint64_t{16} << 30U;
  folder.live.shm_free = std::uint64_t{15} << 30U;
  addFunction(folder, {.address = "0000:00:02.0",
                       .bridge = "pci0000:00",
                       .vendor = "0x8086",
                       .device = "0xa7a0",
                       .kind = "0x030000",
                       .group = 0,
                       .group_type = "DMA-FQ"});
  addFunction(folder, {.address = "0000:00:14.3",
                       .bridge = "pci0000:00",
                       .vendor = "0x8086",
                       .device = "0x51f1",
                       .kind = "0x028000",
                       .speed = "Unknown",
                       .width = "0",
                       .group = 9,
                       .group_type = "DMA-FQ"});
  addInterface(folder,
               {.name = "wlp0s20f3", .pci = "0000:00:14.3", .addresses = {"192.168.178.30"}});
  addInterface(folder, {.name = "enp0s31f6", .state = "down"});
  addRoutes(folder, "192.168.178.1");
}

// A development machine in a cloud: Linux 6.18, no PCI, no Yama, cgroup v1 with an empty v2 beside.
void fillSmallVm(NodeFolder& folder) {
  addMachine(folder, {.hostname = "vm",
                      .kernel = "6.18.5",
                      .processors = 2,
                      .numa_nodes = 1,
                      .gibibytes = 8,
                      .processor = "Intel(R) Xeon(R) Processor"});
  folder.remove("/sys/devices/virtual/dmi");
  folder.remove("/sys/class/dmi");
  folder.remove("/sys/fs/cgroup");
  folder.write("/proc/self/cgroup", "5:memory:/\n4:cpuset:/\n3:cpu:/\n0::/");
  folder.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  folder.write("/proc/sys/kernel/dmesg_restrict", "1");
  setLimits(folder, "8388608", "1048576");
  setUser(folder, 1000, "0000000000000000", "000001ffffffffff", 0);
  folder.live.kernel_log = Tried{.ok = false, .text = "Operation not permitted"};
  folder.live.shm_bytes = std::uint64_t{4} << 30U;
  folder.live.shm_free = std::uint64_t{4} << 30U;
  addInterface(folder, {.name = "eth0", .addresses = {"172.16.0.2"}});
  addRoutes(folder, "172.16.0.1");
}

constexpr std::array kHealthy{
    HealthyNode{"p5.48xlarge", p5},
    HealthyNode{"p5en.48xlarge", p5en},
    HealthyNode{"p6-b200.48xlarge", p6b200},
    HealthyNode{"OpenShift after", openShiftAfter},
    HealthyNode{"AKS ND H100", aksNd},
    HealthyNode{"RoCE on bare metal", roceNode},
    HealthyNode{"GB200", gb200},
    HealthyNode{"laptop", laptop},
    HealthyNode{"small VM", smallVm},
};

}  // namespace

std::string Fixture::place(const std::string& path) const {
  const auto slash = path.rfind('/');
  const std::string folder = node().tree.resolve(path.substr(0, slash));
  return folder.empty() ? path : folder + path.substr(slash);
}

void Fixture::rewrite(const std::string& path, const std::string& text) const {
  write(place(path), text);
}

void Fixture::erase(const std::string& path) const { remove(place(path)); }

Fixture p5() { return Fixture(fillP5); }
Fixture p5en() { return Fixture(fillP5en); }
Fixture p6b200() { return Fixture(fillP6b200); }
Fixture openShiftBefore() { return Fixture(fillOpenShiftBefore); }
Fixture openShiftAfter() { return Fixture(fillOpenShiftAfter); }
Fixture aksNd() { return Fixture(fillAksNd); }
Fixture roceNode() { return Fixture(fillRoceNode); }
Fixture gb200() { return Fixture(fillGb200); }
Fixture laptop() { return Fixture(fillLaptop); }
Fixture smallVm() { return Fixture(fillSmallVm); }

std::span<const HealthyNode> healthyNodes() { return kHealthy; }

std::span<const std::string> garbageTexts() {
  static const std::array<std::string, 9> texts{
      "",   "\x1b[2J\x1b]0;x\x07", "99999999999999999999999999", "-1", "0x", "4: ACTIVE",
      "%s", std::string(1, '\0'),  std::string(70000, 'A')};
  return texts;
}

void fillAll(const Fixture& folder, const std::string& text) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder.root() + "/sys/devices"))
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  for (const std::filesystem::path& file : files)
    folder.write(file.string().substr(folder.root().size()), text);
}

}  // namespace viaduct::diag::testing
