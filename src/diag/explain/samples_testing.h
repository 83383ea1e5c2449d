// Log lines, each with the code of its one known text, and lines without any. Every pattern has a
// line. Threads: constants.
#pragma once

#include <string_view>
#include <vector>

namespace viaduct::diag {

struct LogSample {
  std::string_view code = {};
  std::string_view line = {};
};

inline std::vector<LogSample> verbsSamples() {
  return {
      {"log.loc-prot-err",
       "pod-0:123:456 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer "
       "10.1.8.30<55095> with status=IBV_WC_LOC_PROT_ERR(4) opcode=IBV_WC_SEND(0) reqSize=524288 "
       "vendor_err=81 req_type=Send localGid ::ffff:10.0.106.7 remoteGids::ffff:10.0.106.6 hca "
       "mlx5_11"},
      {"log.loc-prot-err",
       "n1:77:99 [0] transport/net_ib.cc:1190 NCCL WARN NET/IB : Got completion from peer "
       "10.0.0.2<44321> with status=4 opcode=0 len=0 vendor err 81 (Send)"},
      {"log.loc-prot-err",
       "n1:77:99 [0] transport/net_ib.cc:839 NCCL WARN NET/IB : Got completion with error 4, "
       "opcode "
       "0, len 32600, vendor err 81"},
      {"log.loc-prot-err", " Failed status 4: wr_id 0 syndrom 0x51"},
      {"log.loc-prot-err",
       "[n1:24:0:24] ib_mlx5_log.c:177  Local protection on mlx5_0:1/RoCE (synd 0x4 vend 0x51 "
       "hw_synd 0/0)"},
      {"log.loc-prot-err", "worker: poll_cq: local protection error (4)"},
      {"log.retry-exceeded",
       "NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4> with "
       "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) vendor_err=129"},
      {"log.retry-exceeded",
       "w-0:3468:3905 [4] NCCL WARN NET/IB : Got completion from peer 10.2.1.6<54862> with "
       "status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fd00::1 remoteGidsfd00::2"},
      {"log.retry-exceeded",
       "n1:1:2 [0] NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err "
       "129"},
      {"log.retry-exceeded", "n1:1:2 [0] NCCL WARN NET/IB : completion failed, vendor err 129"},
      {"log.retry-exceeded", "mlx5_2: vendor_err=129"},
      {"log.loc-prot-err", "rank 3: vendor_err=81"},
      {"log.loc-prot-err", "completion with vendor err 81"},
      {"log.wr-flush", "rank 3: vendor_err=249"},
      {"log.retry-exceeded", " Failed status 12: wr_id 0 syndrom 0x81"},
      {"log.retry-exceeded", "mlx5: n1: got completion with error, vendor syndrome 0x81"},
      {"log.retry-exceeded",
       "[n1:31180:0:31180] ib_mlx5_log.c:143  Transport retry count exceeded on mlx5_0:1/RoCE "
       "(synd 0x15 vend 0x81 hw_synd 0/0)"},
      {"log.retry-exceeded", "rdma: completion: transport retry count exceeded"},
      {"log.retry-exceeded",
       "libfabric:1:2::verbs:cq:vrb_report_wc():90<warn> transport retry counter exceeded"},
      {"log.rnr-retry", "wc error IBV_WC_RNR_RETRY_EXC_ERR on qp 33"},
      {"log.rnr-retry",
       "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with status=13 opcode=0 len=0 "
       "vendor err 135 (Send)"},
      {"log.rnr-retry",
       "NCCL WARN NET/IB : Got completion with error 13, opcode 0, len 0, vendor err 135"},
      {"log.rnr-retry", "cq entry: RNR retry counter exceeded"},
      {"log.rnr-retry",
       "[n1:9:0:9] ib_mlx5_log.c:177  Receive-not-ready retry count exceeded on mlx5_0:1/IB (synd "
       "0x16 vend 0x87 hw_synd 0/0)"},
      {"log.rem-op-err", "completion error: IBV_WC_REM_OP_ERR"},
      {"log.rem-op-err",
       "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with status=11 opcode=0 len=0 "
       "vendor err 137 (Send)"},
      {"log.rem-op-err",
       "NCCL WARN NET/IB : Got completion with error 11, opcode 0, len 0, vendor err 137"},
      {"log.rem-op-err",
       "[n1:9:0:9] ib_mlx5_log.c:177  Remote OP on mlx5_0:1/IB (synd 0x14 vend 0x89 hw_synd 0/0)"},
      {"log.rem-op-err", "cq entry with status 11: remote operation error"},
      {"log.rem-op-err", "rdma: completion failed: remote operation error"},
      {"log.rem-access-err", "rdma read failed: IBV_WC_REM_ACCESS_ERR vendor err 136"},
      {"log.rem-access-err",
       "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with status=10 opcode=1 len=0 "
       "vendor err 136 (Send)"},
      {"log.rem-access-err",
       "NCCL WARN NET/IB : Got completion with error 10, opcode 1, len 0, vendor err 136"},
      {"log.rem-access-err",
       "[n1:9:0:9] ib_mlx5_log.c:177  Remote access on mlx5_0:1/IB (synd 0x13 vend 0x88 hw_synd "
       "0/0)"},
      {"log.rem-access-err", "mlx5_0: completion with syndrome 0x14"},
      {"log.rem-access-err", "qp 0x1f2 received NAK remote access"},
      {"log.rem-access-err", "rdma: completion failed: remote access error"},
      {"log.rem-access-err", "[nvmf] Error on CQ, type DATA, status: (10): remote access error"},
      {"log.wr-flush",
       "NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4> with status=IBV_WC_WR_FLUSH_ERR(5) "
       "opcode=IBV_WC_SEND(0) vendor_err=249"},
      {"log.wr-flush",
       "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with status=5 opcode=0 len=0 "
       "vendor "
       "err 249 (Recv)"},
      {"log.wr-flush",
       "NCCL WARN NET/IB : Got completion with error 5, opcode 0, len 0, vendor err 249"},
      {"log.wr-flush", "NCCL WARN NET/IB : failed request, vendor err 249"},
      {"log.wr-flush", " Failed status 5: wr_id 0 syndrom 0xf9"},
      {"log.wr-flush",
       "[n1:9:0:9] ib_mlx5_log.c:177  WR flushed because QP in error state on mlx5_0:1/IB (synd "
       "0x5 "
       "vend 0xf9 hw_synd 0/0)"},
      {"log.wr-flush", "cq entry: Work Request Flushed Error"},
      {"log.memlock",
       "[1668693503.47] [n1:1188443:0] ib_log.c:246  UCX  ERROR mlx5_0: ibv_create_cq() failed: "
       "Cannot allocate memory. Please set max locked memory (ulimit -l) to 'unlimited' (current: "
       "64 kbytes)"},
      {"log.memlock",
       "n1:1:2 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_reg_mr failed with error Cannot "
       "allocate memory"},
      {"log.memlock",
       "ib_iface.c:1 UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory"},
      {"log.memlock", "NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory"},
      {"log.memlock", "fi_mr_reg(): ret=-12 (Cannot allocate memory)"},
      {"log.reg-mr-gpu",
       "ib_md.c:300  UCX  ERROR ibv_reg_mr(address=0x7f2000000000, length=1048576, access=0xf) "
       "failed: Bad address"},
      {"log.reg-mr-gpu", "nixl: fi_mr_reg failed: Bad address"},
      {"log.reg-mr-gpu", "NET/OFI fi_mr_regattr failed with EFAULT for type CUDA"},
      {"log.reg-dmabuf",
       "NCCL WARN Call to ibv_reg_dmabuf_mr failed with error Operation not supported"},
      {"log.reg-dmabuf", "NCCL WARN Call to ibv_reg_dmabuf_mr failed with error Invalid argument"},
      {"log.reg-dmabuf", "UCX  ERROR ibv_reg_dmabuf_mr(fd=9) failed: Bad address"},
      {"log.reg-dmabuf", "Couldn't allocate MR with error=93"},
      {"log.modify-qp",
       "h1:1:2 [5] ibvwrap.c:262 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed "
       "out, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index 3"},
      {"log.modify-qp", " Failed to modify QP 0x1234 to RTR"},
  };
}

inline std::vector<LogSample> ucxSamples() {
  return {
      {"log.ucx-peer-restarted",
       "ib_mlx5_dv.c:430  UCX  ERROR   mlx5dv_devx_obj_modify(opcode=0x503) failed on mlx5_0, "
       "syndrome 0x1f3a: Remote I/O error"},
      {"log.ucx-devx-abi", "UCX  WARN  mlx5dv_devx_obj_destroy(SRQ) failed: Invalid argument"},
      {"log.ucx-uar",
       "UCX  ERROR mlx5dv_devx_alloc_uar(mlx5_0, flags=0x0) failed: Cannot allocate"},
      {"log.ucx-vhca",
       "UCX  WARN  mlx5dv_devx_general_cmd(ALLOW_OTHER_VHCA_ACCESS) failed on mlx5_6, syndrome "
       "0x172df6: Remote I/O error"},
      {"log.ucx-no-am",
       "[1569529750.80] [h:5493 :0] select.c:438  UCX  ERROR no active messages transport to <no "
       "debug data>: Unsupported operation"},
      {"log.ucx-no-protocol",
       "UCX  ERROR cannot find remote protocol for: rma get(multi) into cuda/GPU0"},
      {"log.ucx-no-protocol",
       "proto_reconfig.c:67 UCX  ERROR No zero-copy protocol found for get into host from host"},
      {"log.ucx-no-cuda",
       "ucp_context.c:1 UCX  WARN  transports 'cuda_ipc','cuda_copy' are not available, please use "
       "one or more of: rc, tcp"},
      {"log.ucx-tcp-lost",
       "tcp_ep.c:1204 UCX  ERROR tcp_ep 0x55 (state=CONNECTED): send(54) failed: Input/output "
       "error"},
      {"log.ucx-tcp-lost", "[n:1:0] UCX  ERROR ep 0x7f: failed with status Endpoint timeout"},
      {"log.ucx-rdma",
       "ucp_worker.c:1 UCX  INFO    ucp_context_0 inter-node cfg#3 rma(rc_mlx5/mlx5_0:1) "
       "am(rc_mlx5/mlx5_0:1)"},
      {"log.ucx-rdma", "ucp_worker.c:1 UCX  INFO  ep_cfg[1]: tag(dc_mlx5/mlx5_0:1);"},
      {"log.ucx-rdma", "ucp_worker.c:1 UCX  INFO  ep_cfg[1]: tag(rc_verbs/rxe0:1);"},
      {"log.ucx-tcp", "UCX  INFO    ucp_context_0 inter-node cfg#2 rma_am(tcp/eth0) am(tcp/eth0)"},
      {"log.ucx-tcp", "ucp_worker.c:1 UCX  INFO  ep_cfg[2]: tag(tcp/eth0);"},
      {"log.gdr-copy", "gdr_copy_md.c:161  UCX  ERROR GPU memory pin failed. length :65536 ret 22"},
      {"log.gdr-copy", "gdr_copy_ep.c:57 UCX  ERROR gdr_copy_from_mapping failed. ret:22"},
      {"log.gdr-copy", "gdr_copy_md.c:99 UCX  ERROR gdr_pin_buffer Failed. length :4096"},
      {"log.gdr-copy", "gdr_copy_md.c:99 UCX  ERROR gdr_pin_buffer failed. length :4096"},
  };
}

inline std::vector<LogSample> efaSamples() {
  return {
      {"log.fi-getinfo", "fi_getinfo: -61 (No data available)"},
      {"log.fi-getinfo", "fi_getinfo(): common/shared.c:1029, ret=-61 (No data available)"},
      {"log.fi-getinfo",
       "n1:1:2 [0] NCCL WARN NET/OFI fi_getinfo() call failed: No data available"},
      {"log.ofi-no-provider", "NCCL INFO NET/OFI Could not find any optimal provider"},
      {"log.ofi-no-provider", "NCCL WARN NET/OFI Only EFA provider is supported"},
      {"log.no-libibverbs", "NCCL INFO Failed to open libibverbs.so[.1]"},
      {"log.nixl-no-efa",
       "W1 libfabric_topology.cpp:88] No EFA devices found for PCI 0000:53:00.0"},
      {"log.nixl-no-efa",
       "E1 libfabric_rail_manager.cpp:60] Topology discovery failed - no suitable network "
       "providers "
       "found"},
      {"log.nixl-libfabric", "2026-07-01 NIXL INFO _api.py:363 Backend LIBFABRIC was instantiated"},
      {"log.efa-command",
       "[  812.4] efa 0000:4f:00.0: Failed to process command ALLOC_PD (opcode 14) comp_status 1 "
       "err "
       "-12"},
      {"log.ofi-av",
       "n1:1:2 [7] create_nccl_ofi_component:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, "
       "ERROR: "
       "Invalid argument"},
      {"log.efa-open", "ibv_open_device(rdmap79s0) failed: Cannot allocate memory (12)"},
      {"log.efa-unresponsive",
       "NET/OFI Request completed with error. RC: 4126. Unresponsive receiver (reachable by EFA "
       "device but handshake failed)"},
      {"log.efa-unresponsive", "efa cq error: EFA_IO_COMP_STATUS_LOCAL_ERROR_UNRESP_REMOTE"},
      {"log.efa-create-ah",
       "libfabric:6:1::efa:av:efa_ah_alloc():147<warn> ibv_create_ah failed with EINVAL. Local "
       "GID: "
       "fe80::8e0"},
      {"log.efa-same-node", "W1 libfabric_rail.cpp:1203] fi_read still retrying EAGAIN on rail 0"},
      {"log.efa-versions", "libfabric:1:2::efa:cq: RTM size mismatch"},
      {"log.efa-versions", "Libfabric EFA internal error 14 occurred: Unknown error 14"},
  };
}

inline std::vector<LogSample> engineSamples() {
  return {
      {"log.nixl-no-backend",
       "E0101 nixl_agent.cpp:990] createXferReq: No potential backend found to be able to do the "
       "transfer"},
      {"log.nixl-metadata", "createXferReq: metadata for remote agent 'decode-1' not found"},
      {"log.nixl-disconnect",
       "(EngineCore_DP0 pid=77) ERROR nixl_cu12._bindings.nixlRemoteDisconnectError: "
       "NIXL_ERR_REMOTE_DISCONNECT"},
      {"log.nixl-backend", "nixl_cu12._bindings.nixlBackendError: NIXL_ERR_BACKEND"},
      {"log.nixl-hash", "RuntimeError: NIXL compatibility hash mismatch. Local: 1f, remote: 2e"},
      {"log.kv-expired",
       "(EngineCore_DP0 pid=3747544) WARNING 09-24 16:35:21 [nixl_connector.py:1048] Releasing "
       "expired KV blocks for request cmpl-3d-0 which were retrieved by 0 decode worker(s) within "
       "120 seconds."},
      {"log.kv-expired",
       "ERROR 11-19 10:12:21 [nixl_connector.py:1068] Potentially invalid KV blocks for "
       "unrecognized "
       "request chatcmpl-12 were retrieved by a decode worker. They may have expired."},
      {"log.sglang-kv-timeout",
       "[2025-09-03 18:36:43 TP0 EP0] Some requests fail to receive KV Cache transfer done signal "
       "after bootstrapping."},
      {"log.sglang-kv-timeout",
       "[2025-10-15 11:03:35 DP6] KVTransferError(bootstrap_room=83): Request 83 timed out after "
       "600.0s in KVPoll.WaitingForInput"},
      {"log.pd-unsupported", "ValueError: PD Disaggregation does NOT support PD with different TP"},
      {"log.cufile", "GDS: cuFileHandleRegister failed: 5008"},
      {"log.plugin-cuda",
       "E1 nixl_plugin_manager.cpp:206] Failed to load plugin from libplugin_GDS.so: "
       "libcudart.so.12: "
       "cannot open shared object file"},
  };
}

inline std::vector<LogSample> systemSamples() {
  return {
      {"log.iommu-fault",
       "[ 99.1] mlx5_core 0000:19:00.6: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0067 "
       "address=0xfd200000 flags=0x0020]"},
      {"log.iommu-fault",
       "[ 99.1] DMAR: [DMA Read NO_PASID] Request device [19:00.6] fault addr 0xfd200000 [fault "
       "reason 0x06] PTE Read access is not set"},
      {"log.iommu-fault", "[ 99.1] arm-smmu-v3 arm-smmu-v3.5.auto: event 0x10 received:"},
      {"log.iommu-translated", "[    0.6] iommu: Default domain type: Translated"},
      {"log.iommu-encryption",
       "[    0.6] iommu: Memory encryption detected - Disabling default IOMMU Passthrough"},
      {"log.iommu-passthrough",
       "[    0.6] iommu: Default domain type: Passthrough (set via kernel command line)"},
      {"log.pcie-limited",
       "[ 4.2] mlx5_core 0000:17:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s "
       "PCIe "
       "x8 link at 0000:16:00.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)"},
      {"log.aer-uncorrected",
       "[ 8.1] pcieport 0000:16:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), "
       "type=Transaction Layer"},
      {"log.aer-uncorrected",
       "[ 8.1] pcieport 0000:16:00.0: AER: Uncorrectable (Fatal) error message received from "
       "0000:17:00.0"},
      {"log.aer-corrected",
       "[ 8.1] pcieport 0000:16:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer"},
      {"log.aer-corrected",
       "[ 8.1] pcieport 0000:16:00.0: AER: Corrected error message received from 0000:17:00.0"},
      {"log.peermem-load", "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument"},
      {"log.peermem-load", "modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument"},
      {"log.peermem-load",
       "[ 9.1] nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client"},
      {"log.peermem-load",
       "[ 9.1] nv_peer_mem: disagrees about version of symbol ib_register_peer_memory_client"},
      {"log.peermem-load",
       "[ 9.1] nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)"},
      {"log.peermem-load", "[ 9.1] nv_peer_mem: Unknown symbol nvidia_p2p_put_pages (err -22)"},
      {"log.cuda-802", "RuntimeError: CUDA error: system not yet initialized"},
      {"log.cuda-802",
       "UserWarning: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet "
       "initialized"},
      {"log.cuda-802", "NCCL WARN Cuda failure 'system not yet initialized'"},
      {"log.cuda-802", "rank 3: error 802: system not yet initialized"},
      {"log.cuda-803",
       "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has "
       "unsupported "
       "display driver / cuda driver combination"},
      {"log.cuda-803", "Failed to initialize NVML: Driver/library version mismatch"},
      {"log.cuda-no-device", "RuntimeError: CUDA error: no CUDA-capable device is detected"},
      {"log.cuda-no-device", "cuInit(0) failed: CUDA_ERROR_NO_DEVICE"},
      {"log.cuda-ipc",
       "cuda_ipc_cache.c:174 UCX  ERROR cuIpcOpenMemHandle() failed: invalid argument"},
      {"log.cuda-ipc", "cudaIpcOpenMemHandle(&base, handle, 1): invalid resource handle"},
      {"log.cuda-ipc", "cuda_ipc_md.c:95 UCX  ERROR cuIpcGetMemHandle() failed: invalid argument"},
      {"log.cuda-ipc", "Cuda failure in cudaIpcGetMemHandle 'invalid argument'"},
      {"log.cuda-peer",
       "RuntimeError: CUDA error: peer access is not supported between these two devices"},
      {"log.cuda-peer", "cuCtxEnablePeerAccess: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
      {"log.shm", "write /dev/shm/nccl-x1: No space left on device"},
      {"log.shm", "NCCL WARN posix_fallocate: No space left on device (28), /dev/shm/nccl-x1"},
      {"log.shm", "mm_sysv.c:59 UCX  ERROR shmat(shmid=3) failed: Invalid argument"},
      {"log.cma",
       "cma_ep.c:81 UCX  ERROR process_vm_readv(pid=3) returned -1: Operation not permitted"},
      {"log.cma", "process_vm_writev failed: Operation not permitted"},
      {"log.io-uring", "io_uring_setup() failed: Operation not permitted"},
      {"log.open-files", "accept4: Too many open files"},
      {"log.oom",
       "[ 70.1] Memory cgroup out of memory: Killed process 4021 (python3) total-vm:91837364kB"},
      {"log.oom", "[ 70.1] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri"},
  };
}

inline std::vector<LogSample> ncclSamples() {
  return {
      {"log.nccl-ib-gdr",
       "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA"},
      {"log.nccl-efa-gdr",
       "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/1/GDRDMA"},
      {"log.nccl-efa-gdr",
       "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Libfabric/1/GDRDMA"},
      {"log.nccl-no-gdr", "n:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0"},
      {"log.nccl-no-gdr", "n:1:2 [7] NCCL INFO Ring 00 : 7 -> 8 [send] via NET/AWS Libfabric/0"},
      {"log.nccl-no-gdr", "n:1:2 [7] NCCL INFO Channel 00 : 7 -> 8 [send] via NET/Libfabric/0"},
      {"log.nccl-socket",
       "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0"},
      {"log.nccl-socket", "n:1:2 [0] NCCL INFO Using network Socket"},
      {"log.nccl-no-ib", "n:1:2 [0] NCCL INFO NET/IB : No device found."},
      {"log.nccl-no-ib", "n:1:2 [0] NCCL INFO Failed to initialize NET plugin IB"},
      {"log.nccl-no-interface", "n:1:2 [0] NCCL WARN Bootstrap : no socket interface found"},
      {"log.nccl-topo", "n:1:2 [0] NCCL WARN Attribute arch of node cpu not found"},
      {"log.nccl-follow-up",
       "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
       "prematurely."},
      {"log.nccl-follow-up",
       "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or "
       "device "
       "error."},
      {"log.nccl-follow-up",
       "[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation "
       "timeout: "
       "WorkNCCL(SeqNum=14)"},
  };
}

inline std::vector<LogSample> podSamples() {
  return {
      {"log.k8s-insufficient",
       "Warning FailedScheduling 0/4 nodes are available: 4 Insufficient vpc.amazonaws.com/efa."},
      {"log.k8s-insufficient", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."},
      {"log.k8s-insufficient", "0/2 nodes are available: 2 Insufficient hugepages-2Mi."},
      {"log.k8s-insufficient",
       "0/2 nodes are available: 2 Insufficient rdma/rdma_shared_device_a."},
      {"log.k8s-insufficient", "0/2 nodes are available: 2 Insufficient openshift.io/mlnx."},
      {"log.k8s-runtime-class", "pod rejected: RuntimeClass \"nvidia\" not found"},
      {"log.k8s-scc", "forbidden: unable to validate against any security context constraint: []"},
      {"log.k8s-network", "cannot find a network-attachment-definition (rail0) in namespace (a)"},
      {"log.k8s-config", "decode-0  0/1  CreateContainerConfigError  0  5s"},
      {"log.k8s-config", "Warning Failed kubelet Error: secret \"viaduct\" not found"},
      {"log.image-pull", "decode-0  0/1  ErrImagePull  0  5s"},
      {"log.image-pull", "decode-0  0/1  ImagePullBackOff  0  25s"},
      {"log.image-platform", "failed to pull: no match for platform in manifest: not found"},
      {"log.image-platform", "exec /usr/bin/viaduct: exec format error"},
      {"log.no-cuda-driver",
       "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"},
      {"log.etcd-uri", "terminate called after throwing: the target uri is not valid"},
      {"log.name-unresolved", "curl: (6) Could not resolve host: etcd.default"},
      {"log.name-unresolved", "socket.gaierror: [Errno -2] Name or service not known"},
      {"log.name-unresolved", "getaddrinfo: Temporary failure in name resolution"},
      {"log.connection-refused", "cannot connect to 10.0.0.1:5555 (Connection refused)"},
  };
}

inline std::vector<LogSample> allSamples() {
  std::vector<LogSample> out;
  for (auto* family : {&verbsSamples, &ucxSamples, &efaSamples, &engineSamples, &systemSamples,
                       &ncclSamples, &podSamples})
    for (const LogSample& sample : family()) out.push_back(sample);
  return out;
}

// Lines that resemble a known text but mean something else.
inline std::vector<std::string_view> harmlessLines() {
  return {
      "the request ended with error 12 after 3 retries",
      "Process 4711 exited with status=5",
      "health check: exit_status=12",
      "INFO: status=4 of job 81",
      "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with status=127 opcode=0 len=0",
      "NCCL WARN NET/IB : Got completion with error 120, opcode 0, len 0, vendor err 1290",
      "NCCL WARN NET/IB : Got completion with error 53, opcode 0, len 0, vendor err 811",
      "n:1:2 [0] NCCL INFO NET/Socket : Using [0]ib0:192.168.11.1<0>",
      "n:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
      "n:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:192.168.11.1<0>",
      "n:1:2 [0] NCCL INFO Using network IB",
      "n:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.",
      "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC",
      "libfabric:1:2::core:core:fi_getinfo_():1302<info> fi_getinfo: provider ofi_rxm returned -61 "
      "(No data available)",
      "[ 0.5] iommu: DMA domain TLB invalidation policy: lazy mode",
      "[ 0.5] DMAR: IOMMU enabled",
      "[ 4.2] mlx5_core 0000:17:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 "
      "link)",
      "efa 0000:4f:00.0: Setup irq:1861 name:efa-mgmnt@pci:0000:4f:00.0",
      "malloc: Cannot allocate memory",
      "open /data/x: No space left on device",
      "mkdir /mnt: Operation not permitted",
      "connect: Bad address",
      "GET /v1/models HTTP/1.1 200 OK",
      "request 17 timed out after 30s in the queue",
      "UCX  INFO  UCX_TLS=rc,cuda",
      "plugin libcudart.so.12 loaded",
      "remote access granted to user ops",
      "vpn: remote access error for user ops",
      "git: remote operation error, HTTP 500",
      "logging system not yet initialized",
      "nvidia_peermem: loaded",
      "Driver/library versions match",
      "cuIpcOpenMemHandle: 3 handles in the cache",
      "peer access is enabled between devices 0 and 1",
      "AER: enabled with IRQ 33",
  };
}

}  // namespace viaduct::diag
