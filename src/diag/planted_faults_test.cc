// Plants each kind of fault that the doctor knows on a healthy node, alone and beside others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diag/config_space_testing.h"
#include "diag/explain/finding_codes.h"
#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using namespace std::string_literals;
using testing::Fixture;
using Plant = std::function<void(Fixture&)>;

struct PlantedFault {
  const char* name;
  std::string code;  // code of its finding; empty: harmless
  const char* sign;  // a text in the finding that only this fault causes
  std::vector<Plant> plants;
  bool info = false;  // the finding is only information
};

// Two faults that a node cannot have at once, or one of which necessarily hides the other.
struct NoPair {
  const char *one, *other, *reason;
};

struct FaultyNode {
  const char* name;
  Fixture (*make)();
  std::vector<PlantedFault> faults;
  std::vector<NoPair> apart = {};
};

// ---- Functions that plant a fault.

Plant file(const std::string& path, const std::string& text) {
  return [=](Fixture& node) { node.rewrite(path, text); };
}
Plant added(const std::string& path, const std::string& text) {
  return [=](Fixture& node) { node.write(path, text); };
}
Plant gone(const std::string& path) {
  return [=](Fixture& node) { node.erase(path); };
}
Plant variable(const std::string& name, const std::string& value) {
  return [=](Fixture& node) { node.variables[name] = value; };
}
Plant grown(const std::string& path) {
  return [=](Fixture& node) { node.live.grown[path] = 17; };
}
Plant logged(const std::string& line) {
  return [=](Fixture& node) { node.live.kernel_log->text += "\n" + line; };
}
Plant library(const std::string& name, const std::string& path, const std::string& version) {
  return [=](Fixture& node) { node.live.libraries.push_back({name, path, version}); };
}
Plant version(const std::string& name, const std::string& text) {
  return [=](Fixture& node) {
    for (auto& one : node.live.libraries)
      if (one.name == name) one.version = text;
  };
}
Plant address(const std::string& interface, const std::string& text) {
  return [=](Fixture& node) {
    for (auto& one : node.live.addresses)
      if (one.interface == interface) one.address = text;
  };
}
Plant noCopy() {
  return
      [](Fixture& node) { node.live.copy = Tried{.ok = false, .text = "Operation not permitted"}; };
}

std::string port(const std::string& device) {
  return "/sys/class/infiniband/" + device + "/ports/1/";
}
std::string pci(const std::string& function) { return "/sys/bus/pci/devices/" + function + "/"; }
std::string net(const std::string& name) { return "/sys/class/net/" + name + "/"; }
std::string group(int number) { return fmt::format("/sys/kernel/iommu_groups/{}/type", number); }

Plant noGid(const std::string& device, int index) {
  return [=](Fixture& node) {
    node.rewrite(fmt::format("{}gids/{}", port(device), index),
                 "0000:0000:0000:0000:0000:0000:0000:0000");
    node.erase(fmt::format("{}gid_attrs/types/{}", port(device), index));
  };
}
Plant gid(const std::string& device, int index, const std::string& text,
          const std::string& interface) {
  return [=](Fixture& node) {
    node.rewrite(fmt::format("{}gids/{}", port(device), index), text);
    node.rewrite(fmt::format("{}gid_attrs/types/{}", port(device), index), "RoCE v2");
    node.rewrite(fmt::format("{}gid_attrs/ndevs/{}", port(device), index), interface);
  };
}

std::string limits(const char* memlock, const char* files) {
  return fmt::format(
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max open files            {0:<20} {0:<20} files\n"
      "Max locked memory         {1:<20} {1:<20} bytes",
      files, memlock);
}
std::string status(unsigned uid, const char* effective, const char* bounding) {
  return fmt::format("Name:\tviaduct\nUid:\t{0}\t{0}\t{0}\t{0}\nCapEff:\t{1}\nCapBnd:\t{2}", uid,
                     effective, bounding);
}

constexpr auto kNoCapabilities = "0000000000000000";
constexpr auto kOfDocker = "00000000a80425fb", kOfDockerAndIpcLock = "00000000a80465fb";
constexpr auto kGen3 = "8.0 GT/s PCIe", kGen4 = "16.0 GT/s PCIe";

// ---- Bare metal with RoCE. mlx5_3 is 0000:6c:00.0 below the ports 0000:69:01.0, 0000:6a:00.0 and
// 0000:6b:00.0, its interface is rail3, its IOMMU group 26, and its GPU 0000:6d:00.0.

FaultyNode onRoce() {
  return {
      "RoCE on bare metal",
      testing::roceNode,
      {
          {"rate below siblings",
           "rdma.rate-below-siblings",
           "mlx5_0",
           {file(port("mlx5_0") + "rate", "200 Gb/sec (2X NDR)")}},
          {"firmware differs",
           "rdma.firmware-differs",
           "28.36.1010",
           {file("/sys/class/infiniband/mlx5_1/fw_ver", "28.36.1010")}},
          {"uverbs missing on a host",
           "rdma.no-uverbs",
           "uverbs2",
           {gone("/dev/infiniband/uverbs2")}},
          {"no RoCE v2 GID",
           "roce.no-v2-gid",
           "mlx5_2",
           {file(port("mlx5_2") + "gid_attrs/types/1", "IB/RoCE v1"),
            file(port("mlx5_2") + "gid_attrs/types/3", "IB/RoCE v1")}},
          {"link-local GIDs only",
           "roce.link-local-only",
           "mlx5_3",
           {noGid("mlx5_3", 2), noGid("mlx5_3", 3)}},
          {"GID index differs, with an old NCCL",
           "roce.index-differs",
           "5 for mlx5_4",
           {noGid("mlx5_4", 3), version("libnccl.so.2", "2.20.5"),
            gid("mlx5_4", 5, "0000:0000:0000:0000:0000:ffff:0a00:6815", "rail4")}},
          {"interface down",
           "roce.interface-down",
           "rail5",
           {file(net("rail5") + "operstate", "down")}},
          {"MTU 1500", "roce.mtu", "rail6", {file(net("rail6") + "mtu", "1500")}},
          {"no IPv4 on a rail", "roce.no-address", "rail6", {[](Fixture& node) {
             std::erase_if(node.live.addresses,
                           [](const auto& one) { return one.interface == "rail6"; });
           }}},
          {"MTU unlike the other rails",
           "network.mtu",
           "4200 on rail1",
           {file(net("rail1") + "mtu", "4200")}},
          {"rails in one subnet with rp_filter 1",
           "network.rp-filter",
           "rail0, rail1",
           {address("rail1", "10.0.100.22"), file("/proc/sys/net/ipv4/conf/rail1/rp_filter", "1")}},
          {"rails in one subnet with arp_ignore 0",
           "network.same-subnet",
           "rail2, rail3",
           {address("rail3", "10.0.102.22")}},
          {"carrier changes",
           "network.carrier-changes",
           "rail0",
           {file(net("rail0") + "carrier_changes", "50")}},
          {"link_downed grows",
           "counters.link-downed",
           "mlx5_1",
           {grown(port("mlx5_1") + "counters/link_downed")}},
          {"symbol errors grow",
           "counters.signal-errors",
           "mlx5_6",
           {grown(port("mlx5_6") + "counters/symbol_error")}},
          {"out_of_sequence grows",
           "counters.out-of-sequence",
           "mlx5_2",
           {grown(port("mlx5_2") + "hw_counters/out_of_sequence")}},
          {"discards and no np_cnp_sent",
           "counters.discards",
           "mlx5_3",
           {file(port("mlx5_3") + "counters/port_xmit_discards", "4711"),
            file(port("mlx5_3") + "hw_counters/np_cnp_sent", "0"),
            file(port("mlx5_3") + "hw_counters/rp_cnp_handled", "0")}},
          {"receivers not ready",
           "counters.rnr",
           "mlx5_4",
           {grown(port("mlx5_4") + "hw_counters/rnr_nak_retry_err")}},
          {"acknowledgements time out",
           "counters.local-ack-timeout",
           "mlx5_5",
           {grown(port("mlx5_5") + "hw_counters/local_ack_timeout_err")}},
          {"wrong checksums",
           "counters.corrupt-packets",
           "mlx5_6",
           {grown(port("mlx5_6") + "hw_counters/rx_icrc_encapsulated")}},
          {"stale remote keys",
           "counters.remote-access",
           "mlx5_0",
           {grown(port("mlx5_0") + "hw_counters/resp_remote_access_errors")}},
          {"NIC at a lower PCIe generation",
           "pcie.speed",
           "mlx5_1",
           {file(pci("0000:33:00.0") + "current_link_speed", kGen4),
            file(pci("0000:34:00.0") + "current_link_speed", kGen4)}},
          {"NIC with fewer lanes",
           "pcie.width",
           "mlx5_2",
           {file(pci("0000:4f:00.0") + "current_link_width", "8"),
            file(pci("0000:50:00.0") + "current_link_width", "8")}},
          {"slow bridge above the NIC",
           "pcie.upstream",
           "0000:69:01.0",
           {file(pci("0000:69:01.0") + "current_link_speed", kGen3),
            file(pci("0000:6a:00.0") + "current_link_speed", kGen3)}},
          {"400 Gb/s in PCIe 4",
           "pcie.too-slow-for-nic",
           "mlx5_4",
           {file(pci("0000:87:00.0") + "current_link_speed", kGen4),
            file(pci("0000:87:00.0") + "max_link_speed", kGen4),
            file(pci("0000:88:00.0") + "current_link_speed", kGen4)}},
          {"uncorrected PCIe errors",
           "pcie.errors",
           "0000:bd:01.0",
           {file(pci("0000:bd:01.0") + "aer_dev_nonfatal", "DLP 1\nTOTAL_ERR_NONFATAL 1")}},
          {"PCIe errors that grow",
           "pcie.errors",
           "17 more",
           {file(pci("0000:a4:00.0") + "aer_dev_correctable", "RxErr 21\nTOTAL_ERR_COR 21"),
            [](Fixture& node) {
              node.live.grown[node.place(pci("0000:a4:00.0") + "aer_dev_correctable")] = 17;
            }}},
          {"GPU with fewer lanes",
           "pcie.width",
           "GPU 0000:c1:00.0",
           {file(pci("0000:c1:00.0") + "current_link_width", "4")}},
          {"ACS redirect on the switch",
           "iommu.acs-redirect",
           "0000:17:01.0",
           {file(pci("0000:17:01.0") + "config", testing::configSpace({{0x000d, 0, 0x1d}}))}},
          {"iommu=pt and a group of type DMA-FQ",
           "iommu.not-in-force",
           "mlx5_0",
           {file(group(20), "DMA-FQ")}},
          {"DMA faults in the kernel log",
           "kernel-log.page-faults",
           "34:00.0",
           {logged("DMAR: [DMA Write NO_PASID] Request device [34:00.0] fault addr 0xffe00000")}},
          {"PCIe errors in the kernel log",
           "kernel-log.pcie-errors",
           "0000:50:00.0",
           {logged("mlx5_core 0000:50:00.0: PCIe Bus Error: severity=Uncorrected (Fatal)")}},
          {"closed driver and no peer memory",
           "gpu.no-peer-memory",
           "550.135",
           {gone("/sys/module/nvidia_peermem"), version("libcuda.so.1", "550.135"),
            file("/proc/driver/nvidia/version",
                 "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.135  Fri Oct 11 2024")}},
          {"NVSwitches that are not visible",
           "gpu.pairs-over-pcie",
           "12 pairs",
           {gone("/sys/bus/pci/devices/0000:05:00.0"), gone("/sys/bus/pci/devices/0000:06:00.0"),
            gone("/sys/bus/pci/devices/0000:07:00.0"), gone("/sys/bus/pci/devices/0000:08:00.0")},
           true},
          {"old kernel beside nvidia_peermem",
           "gpu.no-dma-buf",
           "5.4.0",
           {[](Fixture& node) { node.live.kernel = "5.4.0-200-generic"; }},
           true},
          {"libcuda of another driver",
           "gpu-access.driver-mismatch",
           "580.159.03",
           {version("libcuda.so.1", "580.159.03")}},
          {"no nvidia_peermem beside dma-buf",
           "gpu.no-peermem",
           "dma-buf alone",
           {gone("/sys/module/nvidia_peermem")},
           true},
          {"namespace of IPC",
           "gpu-access.own-namespaces",
           "4026533999",
           {[](Fixture& node) { node.live.ipc_namespace = 4026533999; }},
           true},
          {"CUDA_VISIBLE_DEVICES of two GPUs",
           "gpu-access.hidden-gpus",
           "sees 2",
           {variable("CUDA_VISIBLE_DEVICES", "0,3")},
           true},
          {"GPU that MIG divides",
           "gpu-access.mig",
           "gpu5/mig",
           {file("/proc/driver/nvidia/capabilities/gpu5/mig/gi1/access", "DeviceFileMinor: 12")},
           true},
          {"CUDA_VISIBLE_DEVICES of another node",
           "gpu-access.visible-devices",
           "names GPU 8",
           {variable("CUDA_VISIBLE_DEVICES", "0,8")}},
          {"GPU without a NIC under its switch",
           "gpu.no-near-nic",
           "0000:dd:00.0",
           {gone("/sys/class/infiniband/mlx5_7")}},
          {"idle GPU at 2.5 GT/s",
           "",
           "",
           {file(pci("0000:dd:00.0") + "current_link_speed", "2.5 GT/s PCIe"),
            file(pci("0000:dd:00.0") + "max_link_speed", "32.0 GT/s PCIe")}},
          {"/dev/shm full", "memory.shm-full", "/dev/shm is full", {[](Fixture& node) {
             node.live.shm_free = std::uint64_t{1} << 20U;
           }}},
          {"rdma.max",
           "limits.rdma",
           "hca_handle=2",
           {file("/sys/fs/cgroup/rdma.max", "mlx5_0 hca_handle=2 hca_object=2000")}},
          {"pids.max", "limits.processes", "100", {file("/sys/fs/cgroup/pids.max", "100")}},
          {"1024 open files",
           "limits.open-files",
           "1024",
           {file("/proc/self/limits", limits("unlimited", "1024"))}},
          {"ptrace_scope 3",
           "copy.cma-denied",
           "3",
           {noCopy(), file("/proc/sys/kernel/yama/ptrace_scope", "3")}},
          {"io_uring_disabled 2",
           "copy.io-uring-denied",
           "2",
           {file("/proc/sys/kernel/io_uring_disabled", "2"),
            [](Fixture& node) { node.live.io_uring = Tried{.ok = false, .text = "EPERM"}; }},
           true},
          {"io_uring without registered memory",
           "copy.io-uring-buffers",
           "Invalid argument",
           {[](Fixture& node) { node.live.io_uring_buffers = Tried{.text = "Invalid argument"}; }},
           true},
          {"path that is missing", "storage.path-missing", "/data/kv", {[](Fixture& node) {
             node.live.paths.push_back(
                 {.path = "/data/kv", .opened = {.text = "stat: No such file or directory"}});
           }}},
          {"path without O_DIRECT", "storage.no-direct", "/data/zfs", {[](Fixture& node) {
             node.live.paths.push_back({.path = "/data/zfs",
                                        .opened = {.ok = true},
                                        .kind = "zfs",
                                        .direct = Tried{.text = "Invalid argument"}});
           }}},
          {"store that refuses the keys",
           "storage.store-keys",
           "InvalidAccessKeyId",
           {[](Fixture& node) {
             node.live.stores.push_back({.endpoint = "https://store",
                                         .ended = StoreStep::kKeys,
                                         .text = "HTTP 403 InvalidAccessKeyId"});
           }}},
          {"interface with a shaper",
           "speed.shaped-interface",
           "limited to 50 Mbit/s by its queueing discipline tbf",
           {[](Fixture& node) {
             node.live.links.push_back(
                 {.name = "eth0", .shaper = "tbf", .shaped_bytes_per_s = 6'250'000});
           }}},
          {"small send buffers",
           "speed.small-buffers",
           "8 KiB (tcp_wmem)",
           {added("/proc/sys/net/ipv4/tcp_wmem", "4096\t8192\t8192")}},
          {"quota of one processor",
           "speed.quota",
           "a quota of 1 processors",
           {added("/sys/fs/cgroup/cpu.max", "100000 100000")}},
          {"tunnel's MTU", "speed.small-packets", "eth7 has an MTU of 576", {[](Fixture& node) {
             node.live.links.push_back({.name = "eth7", .mtu = 576});
           }}},
          {"no huge pages for any process",
           "speed.small-pages",
           "enabled: never",
           {added("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")},
           true},
          {"governor that saves power",
           "cpu.governor",
           "powersave",
           {file("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave")}},
          {"two copies of UCX",
           "libraries.two-ucx",
           "/venv/nixl_cu12.libs/libucp.so.0",
           {library("libucp.so.0", "/venv/nixl_cu12.libs/libucp.so.0", "1.20.0")}},
          {"NCCL_IB_DISABLE",
           "variables.nccl-ib-disable",
           "NCCL_IB_DISABLE=1",
           {variable("NCCL_IB_DISABLE", "1")}},
          {"NCCL_NET=Socket",
           "variables.nccl-net",
           "NCCL_NET=Socket",
           {variable("NCCL_NET", "Socket")}},
          {"NCCL_P2P_DISABLE",
           "variables.nccl-p2p-disable",
           "NCCL_P2P_DISABLE=1",
           {variable("NCCL_P2P_DISABLE", "1")}},
          {"NCCL_NET_GDR_LEVEL=LOC",
           "variables.nccl-net-gdr-level",
           "NCCL_NET_GDR_LEVEL=LOC",
           {variable("NCCL_NET_GDR_LEVEL", "LOC")}},
          {"NCCL_IB_HCA of another node",
           "variables.nccl-ib-hca",
           "mlx5_44",
           {variable("NCCL_IB_HCA", "=mlx5_44")}},
          {"NCCL_SOCKET_IFNAME of another node",
           "variables.nccl-socket-ifname",
           "eth7",
           {variable("NCCL_SOCKET_IFNAME", "eth7")}},
          {"NCCL_IB_GID_INDEX of RoCE v1",
           "variables.nccl-ib-gid-index",
           "a RoCE v1 GID of mlx5_0",
           {variable("NCCL_IB_GID_INDEX", "2")}},
          {"UCX_TLS without RDMA",
           "variables.ucx-tls",
           "tcp,cuda_copy",
           {variable("UCX_TLS", "tcp,cuda_copy")}},
          {"UCX_NET_DEVICES without RDMA",
           "variables.ucx-net-devices",
           "eno1",
           {variable("UCX_NET_DEVICES", "eno1")}},
          {"UCX_RNDV_THRESH=inf",
           "variables.ucx-rndv-thresh",
           "inf",
           {variable("UCX_RNDV_THRESH", "inf")}},
          {"FI_PROVIDER=tcp beside RoCE",
           "variables.fi-provider",
           "FI_PROVIDER=tcp",
           {variable("FI_PROVIDER", "tcp")}},
          {"expandable segments",
           "variables.pytorch-cuda-alloc-conf",
           "expandable_segments:True",
           {variable("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")}},
      },
      {{"closed driver and no peer memory", "libcuda of another driver",
        "both set the version of libcuda"},
       {"closed driver and no peer memory", "no nvidia_peermem beside dma-buf",
        "the closed driver has no dma-buf"},
       {"closed driver and no peer memory", "old kernel beside nvidia_peermem",
        "the one removes the module that the other needs"},
       {"old kernel beside nvidia_peermem", "no nvidia_peermem beside dma-buf",
        "an old kernel has no dma-buf"},
       {"CUDA_VISIBLE_DEVICES of two GPUs", "CUDA_VISIBLE_DEVICES of another node",
        "both set one variable"}}};
}

// ---- A pod on AKS with InfiniBand: mlx5_ib0 to mlx5_ib7.

FaultyNode onInfiniband() {
  return {
      "InfiniBand",
      testing::aksNd,
      {
          {"port down",
           "rdma.port-down",
           "mlx5_ib0",
           {file(port("mlx5_ib0") + "state", "1: DOWN"),
            file(port("mlx5_ib0") + "phys_state", "3: Disabled")}},
          {"no subnet manager",
           "rdma.port-init",
           "mlx5_ib1",
           {file(port("mlx5_ib1") + "state", "2: INIT"), file(port("mlx5_ib1") + "lid", "0x0")}},
          {"LID 0", "rdma.no-lid", "mlx5_ib2", {file(port("mlx5_ib2") + "lid", "0x0")}},
          {"one lane",
           "rdma.narrow",
           "mlx5_ib3",
           {file(port("mlx5_ib3") + "rate", "100 Gb/sec (1X NDR)")}},
          {"SDR on an active port",
           "rdma.rate-below-siblings",
           "mlx5_ib4",
           {file(port("mlx5_ib4") + "rate", "10 Gb/sec (4X SDR)")}},
          {"no link partner",
           "rdma.polling",
           "mlx5_ib5",
           {file(port("mlx5_ib5") + "state", "1: DOWN"),
            file(port("mlx5_ib5") + "phys_state", "2: Polling")}},
          {"nvidia_peermem of another ib_core",
           "gpu.peermem-symbols",
           "Unknown symbol",
           {gone("/sys/module/nvidia_peermem"),
            logged("nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)"),
            version("libcuda.so.1", "550.135"),
            file("/proc/driver/nvidia/version",
                 "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.135  Fri Oct 11 2024")}},
          {"GPU excluded",
           "gpu.excluded",
           "0003:00:00.0",
           {file("/proc/driver/nvidia/gpus/0003:00:00.0/information", "GPU Excluded:\t Yes")}},
          {"libcuda of the compatibility package",
           "gpu.stub-driver",
           "/usr/local/cuda/compat",
           {variable("LD_LIBRARY_PATH", "/usr/local/cuda/compat"),
            file("/usr/local/cuda/compat/libcuda.so.1", ""),
            file("/usr/local/cuda/compat/libcuda.so.550.159.03", ""),
            file("/usr/local/cuda/compat/libcuda.so.580.159.03", "")}},
          {"ptrace_scope 2",
           "copy.cma-denied",
           "2",
           {noCopy(), file("/proc/sys/kernel/yama/ptrace_scope", "2"),
            file("/proc/self/status", status(1000, kNoCapabilities, kOfDocker))}},
          {"clock not synchronized", "clock.unsynchronized", "TIME_ERROR", {[](Fixture& node) {
             node.live.clock = Tried{.ok = false, .text = "TIME_ERROR"};
           }}},
          {"no IPv4 address", "network.no-ipv4", "eth0", {[](Fixture& node) {
             node.live.addresses = {{"lo", "127.0.0.1", 8}};
           }}},
          {"no libibverbs", "libraries.no-verbs", "libibverbs", {[](Fixture& node) {
             std::erase_if(node.live.libraries,
                           [](const auto& one) { return one.name == "libibverbs.so.1"; });
           }}},
          {"NCCL_IB_HCA as a prefix",
           "variables.nccl-ib-hca-prefix",
           "mlx5_ib10",
           {[](Fixture& node) { node.addRdma({.name = "mlx5_ib10"}); },
            variable("NCCL_IB_HCA", "mlx5_ib0,mlx5_ib1")}},
          {"GLOO_SOCKET_IFNAME of another node",
           "variables.gloo-socket-ifname",
           "eth7",
           {variable("GLOO_SOCKET_IFNAME", "eth7")}},
          {"UCX_IB_GID_INDEX of an empty GID",
           "variables.ucx-ib-gid-index",
           "an empty GID of mlx5_ib0",
           {variable("UCX_IB_GID_INDEX", "7")}},
          {"UCX_TLS without CUDA",
           "variables.ucx-tls-cuda",
           "UCX_TLS=rc",
           {variable("UCX_TLS", "rc")}},
          {"UCX_NET_DEVICES without ports",
           "variables.ucx-net-devices-port",
           "UCX_NET_DEVICES=mlx5_ib7",
           {variable("UCX_NET_DEVICES", "mlx5_ib7")}},
          {"UCX_IB_GPU_DIRECT_RDMA=n",
           "variables.ucx-ib-gpu-direct-rdma",
           "UCX_IB_GPU_DIRECT_RDMA=n",
           {variable("UCX_IB_GPU_DIRECT_RDMA", "n")}},
      }};
}

// ---- A pod on EKS: two EFA devices for each GPU, from rdmap85s0.

constexpr auto kEfa85 = "/sys/class/infiniband/rdmap85s0/";

FaultyNode onEfa() {
  return {
      "p5en.48xlarge",
      testing::p5en,
      {
          {"fewer devices than the instance type",
           "efa.fewer-devices",
           "15 of 16",
           {gone("/sys/class/infiniband/rdmap86s0")}},
          {"p2p empty", "efa.no-peer-memory", "rdmap85s0", {file(kEfa85 + "device/p2p"s, "")}},
          {"old driver", "efa.driver-old", "2.5.0g", {file("/sys/module/efa/version", "2.5.0g")}},
          {"failed registrations",
           "efa.errors",
           "reg_mr_err",
           {file(kEfa85 + "hw_counters/reg_mr_err"s, "17")}},
          {"failed address handles",
           "efa.errors",
           "create_ah_err",
           {file(kEfa85 + "hw_counters/create_ah_err"s, "2")}},
          {"mlx5 uverbs beside EFA", "efa.mellanox-beside", "ibp240s0f0", {[](Fixture& node) {
             node.addPci({.address = "0000:f0:00.0",
                          .bridge = "pci0000:e8",
                          .vendor = "0x15b3",
                          .device = "0x1021",
                          .kind = "0x020700"});
             node.addRdma({.name = "ibp240s0f0", .pci = "0000:f0:00.0"});
           }}},
          {"peers that do not answer",
           "counters.unresponsive-peers",
           "rdmap85s0",
           {grown(kEfa85 + "ports/1/hw_counters/unresponsive_remote_events"s)}},
          {"no gdrdrv",
           "gpu.no-gdrcopy",
           "absent",
           {gone("/dev/gdrdrv"), gone("/sys/module/gdrdrv")}},
          {"no nvidia-uvm",
           "gpu-access.no-device-files",
           "/dev/nvidia-uvm",
           {gone("/dev/nvidia-uvm")}},
          {"pod without a GPU",
           "gpu-access.no-gpu",
           "None of the node's 8 GPUs",
           {gone("/dev/nvidiactl"), gone("/dev/nvidia-uvm"),
            [](Fixture& node) {
              for (int gpu = 0; gpu < 8; ++gpu) node.erase(fmt::format("/dev/nvidia{}", gpu));
            }},
           true},
          {"stubs before the driver",
           "gpu.stub-driver",
           "/usr/local/cuda/lib64/stubs",
           {[](Fixture& node) {
             node.variables["LD_LIBRARY_PATH"] += ":/usr/local/cuda/lib64/stubs";
           }}},
          {"memlock of 8 MiB for root without IPC_LOCK",
           "limits.memlock",
           "8MiB",
           {file("/proc/self/limits", limits("8388608", "1048576")),
            file("/proc/self/status", status(0, kOfDocker, kOfDocker))}},
          {"/dev/shm of 64 MiB", "memory.shm-small", "64.0 MiB", {[](Fixture& node) {
             node.live.shm_bytes = std::uint64_t{64} << 20U;
           }}},
          {"no huge pages with FI_EFA_USE_HUGE_PAGE",
           "memory.no-huge-pages",
           "HugePages_Total",
           {variable("FI_EFA_USE_HUGE_PAGE", "1")}},
          {"memory.max too small",
           "limits.memory",
           "17179869184",
           {file("/sys/fs/cgroup/memory.max", "17179869184")}},
          {"two copies of libfabric",
           "libraries.two-libfabric",
           "/usr/lib64/libfabric.so.1",
           {library("libfabric.so.1", "/usr/lib64/libfabric.so.1", "2.5.1")}},
          {"name that does not resolve", "names.unresolved", "etcd.nowhere", {[](Fixture& node) {
             node.live.names["etcd.nowhere"] = Tried{.ok = false, .text = "Name not known"};
           }}},
          {"UCX_TLS on EFA",
           "variables.ucx-tls",
           "rc,cuda_copy",
           {variable("UCX_TLS", "rc,cuda_copy")}},
          {"UCX_NET_DEVICES on EFA",
           "variables.ucx-net-devices",
           "mlx5_0:1",
           {variable("UCX_NET_DEVICES", "mlx5_0:1")}},
          {"FI_PROVIDER without EFA",
           "variables.fi-provider",
           "verbs;ofi_rxm",
           {variable("FI_PROVIDER", "verbs;ofi_rxm")}},
          {"FI_EFA_USE_DEVICE_RDMA=0",
           "variables.fi-efa-use-device-rdma",
           "FI_EFA_USE_DEVICE_RDMA=0",
           {variable("FI_EFA_USE_DEVICE_RDMA", "0")}},
          {"FI_EFA_ENABLE_SHM_TRANSFER=1",
           "variables.fi-efa-enable-shm-transfer",
           "FI_EFA_ENABLE_SHM_TRANSFER=1",
           {variable("FI_EFA_ENABLE_SHM_TRANSFER", "1")}},
          {"NCCL_NET_PLUGIN=none",
           "variables.nccl-net-plugin",
           "NCCL_NET_PLUGIN=none",
           {variable("NCCL_NET_PLUGIN", "none")}},
          {"NCCL_NET=IB on EFA", "variables.nccl-net", "NCCL_NET=IB", {variable("NCCL_NET", "IB")}},
          {"aws-ofi-nccl not in LD_LIBRARY_PATH",
           "variables.aws-ofi-nccl",
           "/opt/aws-ofi-nccl/lib",
           {file("/opt/aws-ofi-nccl/lib/libnccl-net.so", ""),
            [](Fixture& node) {
              std::string& path = node.variables["LD_LIBRARY_PATH"];
              constexpr std::string_view kPlugin = ":/opt/aws-ofi-nccl/lib";
              path.erase(path.find(kPlugin), kPlugin.size());
            }}},
          {"PYTORCH_ALLOC_CONF",
           "variables.pytorch-alloc-conf",
           "PYTORCH_ALLOC_CONF",
           {variable("PYTORCH_ALLOC_CONF", "expandable_segments:True")}},
      },
      {{"no nvidia-uvm", "pod without a GPU", "a pod without a GPU lacks all device files"}}};
}

// ---- A pod on OpenShift with the virtual functions mlx5_6, mlx5_7, mlx5_10 and mlx5_11.

constexpr auto kRail2Info = "PCIDEVICE_OPENSHIFT_IO_ENO6NP0RDMA_INFO";
constexpr auto kRail3Info = "PCIDEVICE_OPENSHIFT_IO_ENO7NP0RDMA_INFO";

FaultyNode onVirtualFunctions() {
  return {
      "OpenShift",
      testing::openShiftAfter,
      {
          {"function without GUID",
           "sriov.no-guid",
           "mlx5_6",
           {file(port("mlx5_6") + "link_layer", "InfiniBand"),
            file(port("mlx5_6") + "state", "2: INIT"),
            file("/sys/class/infiniband/mlx5_6/node_guid", "0000:0000:0000:0000")}},
          {"function that is kept down",
           "sriov.link-down",
           "mlx5_7",
           {file(port("mlx5_7") + "state", "1: DOWN"), file(net("net2") + "operstate", "down")}},
          {"physical function in a list",
           "sriov.physical-listed",
           "NVSHMEM_HCA_LIST",
           {variable("NVSHMEM_HCA_LIST", "mlx5_0")}},
          {"PCIDEVICE JSON that is cut off", "sriov.broken-info", kRail2Info, {[](Fixture& node) {
             node.variables[kRail2Info].resize(30);
           }}},
          {"hostile device name", "sriov.hostile-name", "`id`", {[](Fixture& node) {
             std::string& info = node.variables[kRail3Info];
             info.replace(info.find("mlx5_10"), 7, "`id`");
           }}},
          {"function that is not there",
           "sriov.no-device",
           "0000:19:01.7",
           {variable("PCIDEVICE_OPENSHIFT_IO_EXTRA", "0000:19:01.7")}},
          {"two functions in one resource, without rdma_dev",
           "",
           "",
           {variable("PCIDEVICE_OPENSHIFT_IO_BOTH", "0000:19:00.3,0000:39:00.3"),
            variable("PCIDEVICE_OPENSHIFT_IO_BOTH_INFO",
                     R"({"0000:19:00.3":{"generic":{"deviceID":"0000:19:00.3"},"rdma":{}}})")}},
          {"function of unknown speed",
           "",
           "",
           {file(pci("0000:19:00.3") + "current_link_speed", "Unknown"),
            file(pci("0000:19:00.3") + "current_link_width", "0")}},
          {"uverbs missing for a given device",
           "rdma.no-uverbs",
           "mlx5_11",
           {gone("/dev/infiniband/uverbs17")}},
          {"rail without an interface in the pod",
           "roce.no-interface",
           "mlx5_11",
           {gone("/sys/class/net/net4")}},
          {"IOMMU translates",
           "iommu.translated",
           "mlx5_6",
           {file(group(101), "DMA-FQ"), file("/proc/cmdline", "ro")}},
          {"memory encryption",
           "iommu.memory-encryption",
           "Memory encryption detected",
           {file(group(111), "DMA-FQ"),
            logged("iommu: Memory encryption detected - Disabling default IOMMU Passthrough")}},
          {"IPC_LOCK without effect",
           "limits.ipc-lock-inert",
           "uid 1000",
           {file("/proc/self/limits", limits("8388608", "1048576")),
            file("/proc/self/status", status(1000, kNoCapabilities, kOfDockerAndIpcLock))}},
          {"NCCL_IB_HCA of another pod",
           "variables.nccl-ib-hca",
           "mlx5_12",
           {variable("NCCL_IB_HCA", "=mlx5_12")}},
          {"UCX_TLS=^ib", "variables.ucx-tls", "^ib", {variable("UCX_TLS", "^ib")}},
          {"on-demand paging on functions",
           "variables.ucx-ib-reg-methods",
           "odp",
           {variable("UCX_IB_REG_METHODS", "odp")}},
          {"variables of process 1 alone",
           "variables.only-in-process-1",
           "NCCL_IB_TIMEOUT",
           {file("/proc/1/environ", "PATH=/bin\0NCCL_IB_TIMEOUT=22\0"s)}},
      },
      {{"IOMMU translates", "memory encryption",
        "the topic iommu names one cause for all devices that are translated"}}};
}

// ---- A compute tray of NVL72, arm64.

FaultyNode onGrace() {
  return {
      "GB200",
      testing::gb200,
      {
          {"iommu=pt on arm64",
           "iommu.pt-on-arm",
           "mlx5_0",
           {file("/proc/cmdline", "ro iommu=pt"), file(group(10), "DMA")}},
          {"NIC and GPU on different NUMA nodes",
           "gpu.far-nic",
           "0008:01:00.0",
           {file(pci("0000:03:00.0") + "numa_node", "1"),
            file(pci("0002:03:00.0") + "numa_node", "1")}},
          {"no IMEX channel in a pod",
           "gpu.no-imex-channel",
           "IMEX",
           {gone("/dev/nvidia-caps-imex-channels"),
            variable("KUBERNETES_SERVICE_HOST", "10.100.0.1")}},
          {"driver not loaded", "gpu.no-driver", "4 NVIDIA GPUs", {gone("/proc/driver/nvidia")}},
          {"old libibverbs for dma-buf",
           "libraries.old",
           "32.0",
           {version("libibverbs.so.1", "32.0")}},
      },
      {{"driver not loaded", "old libibverbs for dma-buf",
        "without a driver there is no GPU memory to register"},
       {"driver not loaded", "no IMEX channel in a pod",
        "the driver tells which GPUs have NVLink to other nodes"}}};
}

const std::vector<FaultyNode>& faultyNodes() {
  static const std::vector<FaultyNode> all{onRoce(), onInfiniband(), onEfa(), onVirtualFunctions(),
                                           onGrace()};
  return all;
}

// ---- The tests.

bool showsIn(const Finding& finding, const PlantedFault& fault) {
  const auto has = [&](const std::string& text) {
    return text.find(fault.sign) != std::string::npos;
  };
  return finding.code == fault.code &&
         (has(finding.what) || std::ranges::any_of(finding.evidence, [&](const Evidence& one) {
            return has(one.source) || has(one.value);
          }));
}

using Faults = std::vector<const PlantedFault*>;

// Plants the faults on the node, and expects exactly their findings.
void expectFound(Fixture& node, const Faults& faults) {
  std::set<std::string> wanted, found;
  std::string names;
  node.remember();
  for (const PlantedFault* fault : faults) {
    for (const Plant& plant : fault->plants) plant(node);
    if (!fault->code.empty() && !fault->info) wanted.insert(fault->code);
    names += (names.empty() ? "" : " + ") + std::string(fault->name);
  }
  const Findings findings = diagnose(node.node());
  node.restore();
  for (const Finding& finding : findings.all())
    if (finding.severity > Severity::kInfo) found.insert(finding.code);
  EXPECT_EQ(found, wanted) << names;
  for (const PlantedFault* fault : faults)
    EXPECT_TRUE(fault->code.empty() ||
                std::ranges::any_of(findings.all(),
                                    [&](const Finding& one) { return showsIn(one, *fault); }))
        << fault->name << " in: " << names;
}

bool isApart(const FaultyNode& node, const PlantedFault& a, const PlantedFault& b) {
  const auto names = [&](const NoPair& pair) {
    return (pair.one == std::string_view(a.name) && pair.other == std::string_view(b.name)) ||
           (pair.one == std::string_view(b.name) && pair.other == std::string_view(a.name));
  };
  return std::ranges::any_of(node.apart, names);
}

std::string topicOf(const PlantedFault& fault) {
  return fault.code.substr(0, fault.code.find('.'));
}

using Pairs = std::vector<Faults>;

Pairs allPairs(const FaultyNode& node) {
  Pairs out;
  for (auto one = node.faults.begin(); one != node.faults.end(); ++one)
    for (auto other = one + 1; other != node.faults.end(); ++other)
      if (!isApart(node, *one, *other)) out.push_back({&*one, &*other});
  return out;
}

// Pairs each fault with at least four of other topics. All pairs of a large table would take
// minutes.
Pairs somePairs(const FaultyNode& node) {
  constexpr std::size_t kSmall = 8, kPartners = 4;
  if (node.faults.size() <= kSmall) return allPairs(node);
  const std::size_t count = node.faults.size();
  std::vector<std::set<std::size_t>> partners(count);
  Pairs out;
  // The first round takes only partners that still lack partners themselves.
  for (const bool any : {false, true})
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t step = count / 3; step < count && partners[i].size() < kPartners; ++step) {
        const std::size_t j = (i + step) % count;
        const PlantedFault &one = node.faults[i], &other = node.faults[j];
        if ((!any && partners[j].size() >= kPartners) || topicOf(one) == topicOf(other) ||
            isApart(node, one, other) || !partners[i].insert(j).second)
          continue;
        partners[j].insert(i);
        out.push_back({&one, &other});
      }
  for (std::size_t i = 0; i < count; ++i)
    EXPECT_GE(partners[i].size(), kPartners) << node.faults[i].name;
  return out;
}

void expectPairs(Pairs (*choose)(const FaultyNode&)) {
  std::size_t count = 0;
  for (const FaultyNode& node : faultyNodes()) {
    SCOPED_TRACE(node.name);
    auto folder = node.make();
    for (const Faults& pair : choose(node)) {
      expectFound(folder, pair);
      ++count;
    }
  }
  ::testing::Test::RecordProperty("pairs", std::to_string(count));
}

TEST(PlantedFaults, AreFoundAlone) {
  for (const FaultyNode& node : faultyNodes()) {
    SCOPED_TRACE(node.name);
    auto folder = node.make();
    for (const PlantedFault& fault : node.faults) expectFound(folder, {&fault});
    expectFound(folder, {});
  }
}

TEST(PlantedFaults, AreFoundInPairs) { expectPairs(somePairs); }

// Takes minutes. Run it with diag_test --gtest_also_run_disabled_tests --gtest_filter=*InAllPairs
TEST(PlantedFaults, DISABLED_AreFoundInAllPairs) { expectPairs(allPairs); }

TEST(PlantedFaults, AreOfManyKinds) {
  std::set<std::string> names, codes;
  for (const FaultyNode& node : faultyNodes()) {
    for (const PlantedFault& fault : node.faults) {
      EXPECT_TRUE(names.insert(fault.name).second) << "twice: " << fault.name;
      if (!fault.code.empty()) codes.insert(fault.code);
    }
    for (const NoPair& pair : node.apart)
      EXPECT_TRUE(names.contains(pair.one) && names.contains(pair.other)) << pair.reason;
  }
  EXPECT_GE(names.size(), 110U);
  EXPECT_GE(codes.size(), 100U);
}

// For each finding that decides between a known text's causes, some planted fault has to cause it.
TEST(PlantedFaults, IncludeTheFindingsOfKnownTexts) {
  std::set<std::string_view> codes{"rdma.none"};  // a fault of nodes without devices
  EXPECT_TRUE(diagnose(testing::laptop().node()).has("rdma.none"));
  for (const FaultyNode& node : faultyNodes())
    for (const PlantedFault& fault : node.faults) codes.insert(fault.code);
  for (const FindingCode& one : findingCodesOfTexts())
    EXPECT_TRUE(codes.contains(one.code)) << one.code;
}

}  // namespace
}  // namespace viaduct::diag
