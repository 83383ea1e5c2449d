#include "diag/explain/finding_codes.h"

#include <array>

namespace viaduct::diag {

namespace {

constexpr std::array kCodes{
    FindingCode{
        "acs.redirect",
        "A bridge between a GPU and a NIC redirects peer-to-peer traffic: ReqRedir, CmpltRedir or "
        "UpstreamFwd is set in its ACS control word."},
    FindingCode{"efa.command-errors",
                "A device counter of EFA such as reg_mr_err or create_ah_err is not zero."},
    FindingCode{"efa.foreign-uverbs",
                "The container sees uverbs devices of another vendor next to its EFA devices."},
    FindingCode{"efa.no-gpu-direct", "The p2p file of an EFA device names no GPU provider."},
    FindingCode{"efa.old-driver",
                "The EFA driver is too old for this instance type or for GPUDirect."},
    FindingCode{"efa.too-few", "The container has fewer EFA devices than the instance type."},
    FindingCode{"env.cuda-libraries",
                "LD_LIBRARY_PATH has CUDA stubs or compat libraries before the driver's libcuda."},
    FindingCode{"env.efa-shm", "FI_EFA_ENABLE_SHM_TRANSFER is not 0 although GPU memory is used."},
    FindingCode{"env.expandable-segments", "PYTORCH_CUDA_ALLOC_CONF has expandable_segments:True."},
    FindingCode{"env.fi-provider",
                "FI_PROVIDER or FI_EFA_USE_DEVICE_RDMA keeps libfabric off EFA."},
    FindingCode{
        "env.gdr-off",
        "A variable such as NCCL_NET_GDR_LEVEL=0 or UCX_IB_GPU_DIRECT_RDMA=n turns GPUDirect off."},
    FindingCode{
        "env.gid-index",
        "NCCL_IB_GID_INDEX or UCX_IB_GID_INDEX names a GID that is empty, link-local or RoCE v1."},
    FindingCode{"env.ib-addr-type", "UCX_IB_ADDR_TYPE is unset on an InfiniBand node of AKS."},
    FindingCode{"env.ib-disabled", "NCCL_IB_DISABLE=1 or NCCL_NET=Socket turns RDMA off for NCCL."},
    FindingCode{"env.ib-hca", "NCCL_IB_HCA names a device that this container does not have."},
    FindingCode{"env.net-plugin",
                "NCCL cannot load the aws-ofi-nccl plugin: NCCL_NET_PLUGIN=none, or not in "
                "LD_LIBRARY_PATH."},
    FindingCode{"env.socket-ifname",
                "NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names an interface that does not exist."},
    FindingCode{"env.topo-file", "NCCL_TOPO_FILE names a file that does not fit the devices here."},
    FindingCode{"env.ucx-net-devices",
                "UCX_NET_DEVICES excludes the RDMA devices, or names missing ones."},
    FindingCode{"env.ucx-tls", "UCX_TLS excludes the RDMA transports or the CUDA transports."},
    FindingCode{"env.ucx-on-efa",
                "UCX_TLS or UCX_NET_DEVICES is set on a node that has only EFA devices."},
    FindingCode{"gpu.closed-module",
                "The NVIDIA kernel module is the closed one, which has no dma-buf."},
    FindingCode{"gpu.driver-mismatch",
                "libcuda and the NVIDIA kernel module have different versions."},
    FindingCode{"gpu.fabric-manager",
                "The node has NVSwitches, and the fabric manager does not run."},
    FindingCode{"gpu.far-nic", "The GPU's nearest NIC is behind another host bridge or NUMA node."},
    FindingCode{"gpu.gdrdrv", "The gdrdrv module is missing, or cannot pin GPU memory."},
    FindingCode{"gpu.no-direct-rdma", "Neither nvidia_peermem nor dma-buf is available."},
    FindingCode{"gpu.no-imex", "The node has no IMEX channel, which memory of another node needs."},
    FindingCode{"gpu.peermem-mismatch",
                "nvidia_peermem was built against another ib_core, and could not be loaded."},
    FindingCode{"iommu.faults", "The kernel log has page faults of an IOMMU."},
    FindingCode{"iommu.translated",
                "The IOMMU group of a NIC or GPU translates addresses: its type is DMA or DMA-FQ."},
    FindingCode{"lib.devx-mismatch",
                "rdma-core in the container and the host's driver do not fit."},
    FindingCode{"lib.no-rdma-core", "The container lacks libibverbs or the provider of its NICs."},
    FindingCode{"lib.old-libfabric", "libfabric is older than this GPU or EFA device needs."},
    FindingCode{"lib.two-libfabric", "Two copies of libfabric can be loaded into one process."},
    FindingCode{"lib.ucx-no-cuda", "UCX has no CUDA modules, or they cannot load libcuda."},
    FindingCode{"limits.cma",
                "This process may not copy from another process (ptrace_scope, seccomp)."},
    FindingCode{"limits.io-uring", "io_uring is disabled, or seccomp forbids it."},
    FindingCode{"limits.memlock", "Locked memory is limited, and CAP_IPC_LOCK is not effective."},
    FindingCode{"limits.memory", "The memory limit of the cgroup is nearly reached, or too small."},
    FindingCode{"limits.open-files", "The limit of open files is low."},
    FindingCode{"limits.rdma-cgroup", "The cgroup limits RDMA objects (rdma.max)."},
    FindingCode{"limits.shm", "/dev/shm is small or full."},
    FindingCode{"net.mtu", "The interfaces of the rails have different or small MTUs."},
    FindingCode{
        "net.same-subnet",
        "Several rails are in one subnet, and the kernel's ARP and route settings mix them up."},
    FindingCode{"peer.unreachable",
                "A peer's address does not answer over a rail (doctor --peer)."},
    FindingCode{"pcie.aer", "A PCIe error counter (AER) of a device is not zero."},
    FindingCode{"pcie.downgraded", "A PCIe link runs below its maximum speed or width."},
    FindingCode{"pcie.slow-upstream", "A port above the device is slower than the device."},
    FindingCode{
        "rdma.drops",
        "Counters of lost packets grow: out_of_sequence, local_ack_timeout_err, symbol_error."},
    FindingCode{"rdma.no-device", "The container has no RDMA device."},
    FindingCode{"rdma.no-lid", "An InfiniBand port has no LID: no subnet manager reaches it."},
    FindingCode{"rdma.no-uverbs", "An RDMA device has no readable /dev/infiniband/uverbs file."},
    FindingCode{"rdma.port-down", "A port is not ACTIVE."},
    FindingCode{"roce.gid-differs", "The devices have their RoCE v2 GID at different indices."},
    FindingCode{"roce.mtu", "The RDMA MTU is small because the interface's MTU is."},
    FindingCode{"roce.no-v2-gid", "A RoCE device has no routable RoCE v2 GID."},
    FindingCode{"sriov.no-guid",
                "A virtual function has no GUID, or its link policy keeps it down."},
};

}  // namespace

std::span<const FindingCode> findingCodesOfTexts() { return kCodes; }

}  // namespace viaduct::diag
