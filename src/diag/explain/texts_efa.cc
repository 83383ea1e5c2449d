// Texts of libfabric, of EFA's driver, and of aws-ofi-nccl.
#include "diag/explain/texts.h"

namespace viaduct::diag {
namespace {

using enum TextKind;

std::vector<KnownText> discoveryTexts() {
  return {
      {"log.fi-getinfo",
       kError,
       {{"fi_getinfo: -61"},
        {"fi_getinfo()", "ret=-61"},
        {"fi_getinfo() call failed", "No data available"}},
       "libfabric found no usable device",
       "No provider of libfabric has a device that fits the request.",
       {{"The container has no uverbs files.",
         {"rdma.none", "rdma.no-uverbs"},
         "Request the devices in the pod: vpc.amazonaws.com/efa: N in limits and requests."},
        {"The container sees uverbs files of other NICs, which it may not open.",
         {"efa.mellanox-beside"},
         "Do not mount /dev/infiniband from the host. The device plugin adds the right files."},
        {"The process loads another libfabric, or FI_PROVIDER excludes EFA.",
         {"libraries.two-libfabric", "variables.fi-provider", "variables.fi-efa-use-device-rdma"},
         "Put /opt/amazon/efa/lib first in LD_LIBRARY_PATH, and check: fi_info -p efa -t "
         "FI_EP_RDM"}}},
      {"log.ofi-no-provider",
       kError,
       {{"find any optimal provider"}, {"Only EFA provider is supported"}},
       "aws-ofi-nccl found no EFA",
       "NCCL loaded the plugin, and the plugin found no EFA device through libfabric.",
       {{"The container has no EFA device.",
         {"rdma.none", "rdma.no-uverbs", "efa.fewer-devices"},
         "Request vpc.amazonaws.com/efa: N in the pod."},
        {"libfabric has no efa provider, or is another copy.",
         {"libraries.two-libfabric", "variables.fi-provider", "variables.fi-efa-use-device-rdma"},
         "Install the EFA installer's libfabric in the image."}}},
      {"log.no-libibverbs",
       kWarning,
       {{"Failed to open libibverbs.so"}},
       "libibverbs is not installed",
       "Without libibverbs no program can use RDMA devices.",
       {{"The image lacks rdma-core.",
         {"libraries.no-verbs"},
         "apt-get install libibverbs1 ibverbs-providers"}}},
      {"log.nixl-no-efa",
       kError,
       {{"No EFA devices found for PCI"}, {"no suitable network providers found"}},
       "NIXL's LIBFABRIC backend found no device",
       "The backend found no EFA device, or no device near the GPU.",
       {{"The container has no or too few EFA devices.",
         {"rdma.none", "rdma.no-uverbs", "efa.fewer-devices"},
         "Request vpc.amazonaws.com/efa: N in the pod."},
        {"The container hides the PCI tree, so that devices cannot be matched to GPUs.",
         {},
         "Do not mask /sys in the container."}}},
      {"log.nixl-libfabric",
       kGood,
       {{"Backend LIBFABRIC was instantiated"}},
       "NIXL uses its LIBFABRIC backend",
       "NIXL uses libfabric, and so EFA, and not UCX over TCP.",
       {}}};
}

std::vector<KnownText> driverTexts() {
  return {{"log.efa-command",
           kError,
           {{"efa", "Failed to process command", "comp_status"}},
           "the EFA device refused a command",
           "The kernel log names the command (ALLOC_PD, REG_MR, CREATE_AH) and an error. Error -12 "
           "means that the device has no room.",
           {{"Too many processes or registrations use the device, or one region is too large.",
             {"efa.errors", "limits.rdma"},
             "Use fewer processes per device, and register fewer and smaller regions. Set "
             "FI_EFA_MR_MAX_CACHED_COUNT lower."}}},
          {"log.ofi-av",
           kError,
           {{"NET/OFI", "Couldn't open AV"}},
           "aws-ofi-nccl could not open an address vector",
           "The EFA device has no room for another endpoint of this process.",
           {{"Too many processes use one device.",
             {"efa.errors", "efa.fewer-devices"},
             "Look for efa lines in dmesg. Use one process per GPU, and all EFA devices."}}},
          {"log.efa-open",
           kError,
           {{"ibv_open_device(rdmap", "Cannot allocate memory"}},
           "EFA has no room for another open device",
           "Contexts of the device were opened and not closed.",
           {{"A program leaks contexts or completion channels.",
             {"efa.errors", "efa.driver-old"},
             "Update rdma-core with the EFA installer, and restart the processes."}}}};
}

std::vector<KnownText> transferTexts() {
  return {{"log.efa-unresponsive",
           kError,
           {{"Unresponsive receiver"}, {"LOCAL_ERROR_UNRESP_REMOTE"}},
           "the peer does not answer over EFA",
           "EFA sent packets, and the peer's device or process did not answer.",
           {{"The security group does not allow all traffic to itself in both directions.",
             {},
             "Add an inbound and an outbound rule: all traffic, to the security group itself. "
             "0.0.0.0/0 does not cover EFA."},
            {"The hosts are in different subnets or availability zones.",
             {},
             "Place both in one subnet: EFA is not routed."},
            {"The peer's process died.", {}, "Look at the end of the peer's log."}}},
          {"log.efa-create-ah",
           kError,
           {{"ibv_create_ah failed with EINVAL"}},
           "EFA does not accept the peer's address",
           "The peer's GID is invalid, or lies in another availability zone.",
           {{"The hosts are in different availability zones.",
             {},
             "Place both in one subnet: EFA is not routed."},
            {"The address belongs to an earlier process.", {}, "Exchange addresses again."}}},
          {"log.efa-same-node",
           kWarning,
           {{"fi_read still retrying EAGAIN on rail"}},
           "two processes of one node use EFA between them",
           "EFA does not serve transfers within one node for NIXL. The transfer may never end.",
           {{"Prefill and decode run on the same node.",
             {"variables.fi-efa-enable-shm-transfer"},
             "Place them on different nodes (anti-affinity), or use UCX for pairs on one node."}}},
          {"log.efa-versions",
           kError,
           {{"RTM size mismatch"}, {"EFA internal error"}},
           "the two ends run different libfabric versions",
           "The peers' EFA providers disagree about the format of a packet.",
           {{"Two copies of libfabric are installed, and the ends load different ones.",
             {"libraries.two-libfabric"},
             "Run the same image on both ends, with one libfabric. Look at grep libfabric "
             "/proc/PID/maps."}}}};
}

}  // namespace

std::vector<KnownText> efaTexts() {
  std::vector<KnownText> out = discoveryTexts();
  for (KnownText& text : driverTexts()) out.push_back(text);
  for (KnownText& text : transferTexts()) out.push_back(text);
  return out;
}

}  // namespace viaduct::diag
