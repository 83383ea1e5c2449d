// Texts of NCCL about the path that it took, and errors that follow others.
#include "diag/explain/texts.h"

namespace viaduct::diag {
namespace {

using enum TextKind;

std::vector<KnownText> fastPaths() {
  return {{"log.nccl-ib-gdr",
           kGood,
           {{"via NET/IB", "/GDRDMA"}},
           "NCCL moves GPU memory over InfiniBand or RoCE directly",
           "The NIC reads and writes GPU memory without a copy in host memory.",
           {}},
          {"log.nccl-efa-gdr",
           kGood,
           {{"via NET/AWS Libfabric", "/GDRDMA"}, {"via NET/Libfabric", "/GDRDMA"}},
           "NCCL moves GPU memory over EFA directly",
           "The NIC reads and writes GPU memory without a copy in host memory.",
           {}}};
}

std::vector<KnownText> slowPaths() {
  return {{"log.nccl-no-gdr",
           kWarning,
           {{"via NET/IB"}, {"via NET/AWS Libfabric"}, {"via NET/Libfabric"}},
           "NCCL uses RDMA without GPUDirect",
           "Data passes through host memory on its way. A line with GPUDirect ends with /GDRDMA.",
           {{"Neither nvidia_peermem nor dma-buf is available.",
             {"gpu.no-peer-memory", "gpu.peermem-symbols", "efa.no-peer-memory"},
             "modprobe nvidia_peermem, or install the open NVIDIA kernel module."},
            {"The NIC is far from the GPU, so NCCL does not use GPUDirect.",
             {"gpu.far-nic"},
             "Give the pod NICs near its GPUs. Or set NCCL_NET_GDR_LEVEL=PHB."},
            {"A variable turns GPUDirect off.",
             {"variables.nccl-net-gdr-level", "variables.ucx-ib-gpu-direct-rdma"},
             "Unset NCCL_NET_GDR_LEVEL."}}},
          {"log.nccl-socket",
           kWarning,
           {{"via NET/Socket"}, {"NCCL INFO Using network Socket"}},
           "NCCL uses TCP",
           "NCCL found no RDMA device that it may use. TCP is much slower.",
           {{"RDMA is turned off.",
             {"variables.nccl-ib-disable", "variables.nccl-net"},
             "Unset NCCL_IB_DISABLE and NCCL_NET, often left from an earlier search."},
            {"NCCL_IB_HCA names devices that this pod does not have.",
             {"variables.nccl-ib-hca"},
             "Set NCCL_IB_HCA to the devices of this pod: viaduct env prints it."},
            {"The container has no RDMA device that it may open.",
             {"rdma.none", "rdma.no-uverbs", "rdma.port-down", "sriov.no-guid"},
             "Request the device in the pod, and look at its ports with viaduct doctor."},
            {"On EFA: NCCL did not load the aws-ofi-nccl plugin.",
             {"variables.nccl-net-plugin", "variables.aws-ofi-nccl"},
             "Add /opt/aws-ofi-nccl/lib to LD_LIBRARY_PATH. Unset NCCL_NET_PLUGIN."}}},
          {"log.nccl-no-ib",
           kWarning,
           {{"NET/IB : No device found"}, {"Failed to initialize NET plugin IB"}},
           "NCCL found no InfiniBand or RoCE device",
           "On an EFA node this is normal. Elsewhere NCCL goes on with TCP.",
           {{"The container has no RDMA device that it may open.",
             {"rdma.none", "rdma.no-uverbs"},
             "Request the device in the pod, for example rdma/hca_shared_devices_a: 1."},
            {"NCCL_IB_HCA names devices that this pod does not have.",
             {"variables.nccl-ib-hca"},
             "Set NCCL_IB_HCA to the devices of this pod: viaduct env prints it."},
            {"No port is active.",
             {"rdma.port-down", "rdma.no-lid", "sriov.no-guid"},
             "Look at the ports with viaduct doctor."},
            {"The image lacks rdma-core.",
             {"libraries.no-verbs"},
             "apt-get install libibverbs1 ibverbs-providers"}}}};
}

std::vector<KnownText> startTexts() {
  return {{"log.nccl-no-interface",
           kError,
           {{"no socket interface found"}},
           "NCCL found no interface for its start-up",
           "NCCL exchanges addresses over TCP first, and found no interface for it.",
           {{"NCCL_SOCKET_IFNAME names an interface that does not exist here.",
             {"variables.nccl-socket-ifname", "variables.gloo-socket-ifname"},
             "Unset NCCL_SOCKET_IFNAME, or set it to an interface of ip -br addr."}}},
          {"log.nccl-topo",
           kError,
           {{"Attribute arch of node cpu not found"}},
           "NCCL's topology file does not fit",
           "The file describes other devices than this pod has.",
           {{"NCCL_TOPO_FILE is set by the image or the platform.", {}, "Unset NCCL_TOPO_FILE."}}},
          {"log.nccl-follow-up",
           kFollowUp,
           {{"ncclRemoteError: A call failed possibly due to a network error"},
            {"ncclSystemError: System call (e.g. socket, malloc) or external library call failed"},
            {"Watchdog caught collective operation timeout"}},
           "NCCL stopped after an earlier error",
           "This line names no cause. Look at the first error of all ranks.",
           {}}};
}

}  // namespace

std::vector<KnownText> ncclTexts() {
  std::vector<KnownText> out = fastPaths();
  for (auto* more : {&slowPaths, &startTexts})
    for (KnownText& text : more()) out.push_back(text);
  return out;
}

}  // namespace viaduct::diag
