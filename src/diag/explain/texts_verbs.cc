// Work completions, memory registration and queue pairs: texts of libibverbs that NCCL, UCX,
// libfabric and perftest print. vendor err 81, 129 and 249 are codes of mlx5.
#include "diag/explain/texts.h"

namespace viaduct::diag {
namespace {

using enum TextKind;

KnownText localProtection() {
  return {"log.loc-prot-err",
          kError,
          {{"IBV_WC_LOC_PROT_ERR"},
           {"NET/IB", "Got completion", "status=4"},
           {"NET/IB", "Got completion", "error 4"},
           {"Failed status 4", "syndrom"},
           {"Local protection", "(synd 0x4"},
           {"local protection error"},
           {"vendor_err=81"},
           {"vendor err 81"}},
          "the NIC was refused access to local memory",
          "A work request names memory that the local NIC must not read or write. No data moved.",
          {{"The IOMMU translates the addresses of the NIC or the GPU.",
            {"iommu.translated", "kernel-log.page-faults"},
            "Boot with iommu=pt (x86) or iommu.passthrough=1 (arm64). On OpenShift, set it in a "
            "MachineConfig: kernelArguments: [iommu=pt]."},
           {"PCIe access control (ACS) sends traffic between GPU and NIC to the CPU.",
            {"iommu.acs-redirect"},
            "Clear the redirect bits of each bridge between them at every boot: setpci -s BRIDGE "
            "ECAP_ACS+0x6.w=0000. Or boot with pci=disable_acs_redir=BRIDGE."},
           {"The NIC cannot reach GPU memory, or the memory was remapped after its registration.",
            {"variables.pytorch-cuda-alloc-conf", "gpu.no-peer-memory"},
            "Try NCCL_NET_GDR_LEVEL=0: if it helps, the GPU path is at fault. Unset "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and load nvidia_peermem or use "
            "dma-buf."}}};
}

KnownText retryExceeded() {
  return {"log.retry-exceeded",
          kError,
          {{"IBV_WC_RETRY_EXC_ERR"},
           {"NET/IB", "Got completion", "status=12"},
           {"NET/IB", "Got completion", "error 12"},
           {"vendor_err=129"},
           {"vendor err 129"},
           {"Failed status 12", "syndrom"},
           {"mlx5", "syndrome 0x81"},
           {"Transport retry count exceeded"},
           {"transport retry count exceeded"},
           {"transport retry counter exceeded"}},
          "the peer did not acknowledge RDMA packets",
          "The NIC sent its packets several times, and no acknowledgement came back. An error in "
          "the first seconds points to the configuration. A later one points to loss or to a dead "
          "peer.",
          {{"The GID is the wrong one: RoCE v1, link-local, or another subnet.",
            {"variables.nccl-ib-gid-index", "variables.ucx-ib-gid-index", "roce.no-v2-gid",
             "roce.index-differs"},
            "Unset NCCL_IB_GID_INDEX (NCCL 2.21 and later choose it). For UCX, set "
            "UCX_IB_GID_INDEX to the RoCE v2 entry of each device."},
           {"No route, VLAN or partition connects the rails of the two hosts.",
            {"network.same-subnet", "rdma.port-down", "rdma.no-lid"},
            "Ping the peer over each rail: ping -I INTERFACE PEER_ADDRESS. On a network that "
            "connects only equal rails, set NCCL_CROSS_NIC=0."},
           {"The network drops packets: flow control (PFC, ECN) or a bad cable.",
            {"counters.out-of-sequence", "counters.local-ack-timeout"},
            "Compare out_of_sequence and local_ack_timeout_err before and after a test. Correct "
            "PFC and ECN on the switches, or replace the cable."},
           {"The two ends have different MTUs.",
            {"roce.mtu", "network.mtu"},
            "Set the same MTU on interfaces and switches: ip link set INTERFACE mtu 9000."},
           {"The peer's process or host died.", {}, "Look at the end of the peer's log."}}};
}

KnownText receiverNotReady() {
  return {"log.rnr-retry",
          kError,
          {{"IBV_WC_RNR_RETRY_EXC_ERR"},
           {"NET/IB", "Got completion", "status=13"},
           {"NET/IB", "Got completion", "error 13"},
           {"RNR retry counter exceeded"},
           {"Receive-not-ready retry count exceeded"}},
          "the receiver had no buffer ready",
          "The peer is reachable, and posted no receive buffer in time.",
          {{"The peer's process hangs, is stopped, or is overloaded.",
            {},
            "Look at the peer's log and CPU at the same time."},
           {"Both ends run different versions of the library.",
            {},
            "Run the same image on both ends."}}};
}

KnownText remoteOperation() {
  return {"log.rem-op-err",
          kError,
          {{"IBV_WC_REM_OP_ERR"},
           {"NET/IB", "Got completion", "status=11"},
           {"NET/IB", "Got completion", "error 11"},
           {"Remote OP", "(synd 0x"},
           {"status", "remote operation error"},
           {"completion", "remote operation error"}},
          "the peer's NIC could not complete the request",
          "The request arrived, and the peer's NIC failed while it handled the request.",
          {{"The peer's NIC was refused access to the peer's memory.",
            {},
            "Look for the first error in the peer's log, and run viaduct doctor there."}}};
}

KnownText remoteAccess() {
  return {"log.rem-access-err",
          kError,
          {{"IBV_WC_REM_ACCESS_ERR"},
           {"NET/IB", "Got completion", "status=10"},
           {"NET/IB", "Got completion", "error 10"},
           {"Remote access", "(synd 0x"},
           {"mlx5", "syndrome 0x14"},
           {"NAK remote access"},
           {"status", "remote access error"},
           {"completion", "remote access error"}},
          "the peer refused access to its memory",
          "The address or the key of the request names no registered memory of the peer.",
          {{"The peer deregistered the memory, or restarted, after it sent the key.",
            {},
            "Exchange keys again after each restart. Keep memory registered until transfers end."},
           {"The key is for GPU memory that the peer's NIC cannot reach.",
            {"gpu.no-peer-memory", "variables.pytorch-cuda-alloc-conf"},
            "On the peer, load nvidia_peermem or use the open kernel module with dma-buf."}}};
}

KnownText flushed() {
  return {"log.wr-flush",
          kFollowUp,
          {{"WC_WR_FLUSH"},
           {"NET/IB", "Got completion", "status=5"},
           {"NET/IB", "Got completion", "error 5"},
           {"vendor_err=249"},
           {"vendor err 249"},
           {"Failed status 5", "syndrom"},
           {"WR flushed because QP in error state"},
           {"Work Request Flushed Error"}},
          "a request was dropped after an earlier error",
          "The queue pair failed before, and drops all of its later requests. Look at the first "
          "error.",
          {}};
}

KnownText lockedMemory() {
  return {
      "log.memlock",
      kError,
      {{"Please set max locked memory"},
       {"ibv_reg_mr", "Cannot allocate memory"},
       {"ibv_create_cq", "Cannot allocate memory"},
       {"ibv_create_qp", "Cannot allocate memory"},
       {"fi_mr_reg", "Cannot allocate memory"}},
      "the system refused to lock memory",
      "RDMA needs locked memory for buffers and queues. The limit here is lower than the need.",
      {{"The limit of locked memory is low, and IPC_LOCK is not effective for this user.",
        {"limits.memlock"},
        "containerd: LimitMEMLOCK=infinity in the [Service] part, then restart it. CRI-O: "
        "default_ulimits = [\"memlock=-1:-1\"]. Docker: --ulimit memlock=-1. In a pod, IPC_LOCK "
        "works only for root."},
       {"The cgroup limits RDMA objects or memory.",
        {"limits.rdma", "limits.memory"},
        "Raise rdma.max, or the memory limit of the pod."},
       {"The process has too many mappings.", {}, "sysctl -w vm.max_map_count=262144"}}};
}

KnownText gpuRegistration() {
  return {"log.reg-mr-gpu",
          kError,
          {{"ibv_reg_mr", "Bad address"}, {"fi_mr_reg", "Bad address"}, {"fi_mr_reg", "EFAULT"}},
          "the NIC cannot register this GPU memory",
          "The address is not host memory, and no module maps GPU memory for the NIC.",
          {{"Neither nvidia_peermem nor dma-buf is available.",
            {"gpu.no-peer-memory", "gpu.peermem-symbols"},
            "modprobe nvidia_peermem. Or install the open NVIDIA kernel module, which has "
            "dma-buf. GPU operator: driver.rdma.enabled=true."},
           {"The memory comes from expandable segments, which this library cannot register.",
            {"variables.pytorch-cuda-alloc-conf"},
            "Unset PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."},
           {"libfabric registers memory of this GPU only in a newer version (GB200: 2.5.1).",
            {"libraries.old"},
            "Install libfabric 2.5.1 or later, and rebuild aws-ofi-nccl."}}};
}

KnownText dmabufRegistration() {
  return {"log.reg-dmabuf",
          kError,
          {{"ibv_reg_dmabuf_mr", "Operation not supported"},
           {"ibv_reg_dmabuf_mr", "Invalid argument"},
           {"ibv_reg_dmabuf_mr", "Bad address"},
           {"Couldn't allocate MR with error=93"}},
          "the NIC cannot register GPU memory by dma-buf",
          "The kernel, the NIC driver or the GPU driver has no dma-buf for this memory.",
          {{"The NVIDIA kernel module is the closed one.",
            {"gpu.no-peer-memory"},
            "Install the open kernel module. Or load nvidia_peermem and set "
            "NCCL_DMABUF_ENABLE=0."},
           {"The kernel (before 5.12) or rdma-core (before 34) is too old.",
            {"gpu.no-peer-memory"},
            "Update them. Until then load nvidia_peermem and set NCCL_DMABUF_ENABLE=0."},
           {"The offset of the buffer is not a multiple of the page size.",
            {},
            "Align the buffer to 64 KiB."}}};
}

KnownText modifyQueuePair() {
  return {"log.modify-qp",
          kError,
          {{"ibv_modify_qp", "failed"}, {"Failed to modify QP", "RTR"}},
          "a queue pair could not connect to the peer",
          "The system found no way to the peer's GID, or refused the local GID.",
          {{"The GID index names a GID that is empty, link-local or RoCE v1.",
            {"variables.nccl-ib-gid-index", "variables.ucx-ib-gid-index", "roce.no-v2-gid",
             "roce.index-differs"},
            "Unset NCCL_IB_GID_INDEX. Look at the GIDs with viaduct doctor."},
           {"No route leads from this rail to the rail of the peer.",
            {"network.same-subnet", "rdma.port-down"},
            "Ping the peer over each rail. On a network that connects only equal rails, set "
            "NCCL_CROSS_NIC=0."}}};
}

}  // namespace

std::vector<KnownText> verbsTexts() {
  return {localProtection(),    retryExceeded(),  receiverNotReady(), remoteOperation(),
          remoteAccess(),       flushed(),        lockedMemory(),     gpuRegistration(),
          dmabufRegistration(), modifyQueuePair()};
}

}  // namespace viaduct::diag
