// Texts of NIXL, vLLM, SGLang, TensorRT-LLM, Dynamo and of their storage plugins.
#include "diag/explain/texts.h"

namespace viaduct::diag {
namespace {

using enum TextKind;

std::vector<KnownText> nixlTexts() {
  return {{"log.nixl-metadata",
           kError,
           {{"metadata for remote agent", "not found"}},
           "NIXL does not know the remote agent",
           "The remote agent's metadata was never loaded, or was removed.",
           {{"The peer deregistered or restarted.",
             {},
             "Load the peer's metadata again. Look at the end of the peer's log."}}},
          {"log.nixl-no-backend",
           kError,
           {{"No potential backend found to be able to do the transfer"}},
           "no NIXL backend reaches both memories",
           "No backend has registered the memory at both ends, so NIXL refused the transfer.",
           {{"The memory was registered with a backend that the other end did not create.",
             {},
             "Create the same backend in both agents, before memory is registered."},
            {"The other end's metadata is from before its registration.",
             {},
             "Send the metadata again after register_memory(), and load it again."},
            {"UCX has no transport for this kind of memory.",
             {"variables.ucx-tls", "variables.ucx-tls-cuda"},
             "Unset UCX_TLS, or add cuda_copy and cuda_ipc."}}},
          {"log.nixl-disconnect",
           kError,
           {{"NIXL_ERR_REMOTE_DISCONNECT"}},
           "NIXL lost the connection to the remote agent",
           "UCX closed the connection to the peer, or could not make it.",
           {{"The peer's process died or was restarted.", {}, "Look at the end of the peer's log."},
            {"InfiniBand between pods of AKS needs another address type.",
             {},
             "Set UCX_IB_ADDR_TYPE=eth on both ends."},
            {"The rails of the two nodes do not reach each other.",
             {"rdma.port-down", "roce.no-v2-gid"},
             "Run viaduct doctor --peer HOST."}}},
          {"log.nixl-backend",
           kError,
           {{"NIXL_ERR_BACKEND"}},
           "a NIXL backend could not start or post",
           "UCX or another backend refused. Its own message stands in the lines before.",
           {{"UCX_TLS leaves no transport between these two memories.",
             {"variables.ucx-tls", "variables.ucx-tls-cuda", "variables.ucx-net-devices"},
             "Unset UCX_TLS and UCX_NET_DEVICES, or add rc and cuda_copy."},
            {"GB200 nodes have only cuda_ipc and tcp, and no IMEX channel.",
             {"gpu.no-imex-channel"},
             "Add an IMEX channel to the pod (ComputeDomain), or an RDMA device."},
            {"The container has no RDMA device.",
             {"rdma.none", "rdma.no-uverbs"},
             "Request the device in the pod."}}},
          {"log.nixl-hash",
           kError,
           {{"NIXL compatibility hash mismatch"}},
           "prefill and decode are not compatible",
           "The two engines differ in version, model, cache layout or data type.",
           {{"Prefill and decode run different images or options.",
             {},
             "Run the same image and the same cache options on both."}}}};
}

std::vector<KnownText> cacheTexts() {
  return {{"log.kv-expired",
           kError,
           {{"Releasing expired KV blocks"},
            {"Potentially invalid KV blocks for unrecognized request"}},
           "KV blocks were released before decode read them",
           "Prefill released blocks that decode may still read. Answers can be WRONG.",
           {{"The lease is shorter than the time that requests wait for decode.",
             {},
             "Raise kv_lease_duration, for example to 300 seconds."},
            {"The transfer is slow, for example because it runs over TCP.",
             {"rdma.none", "variables.ucx-tls", "variables.ucx-tls-cuda",
              "variables.ucx-net-devices", "variables.nccl-ib-disable", "variables.nccl-net"},
             "Print the path: NCCL_DEBUG=INFO for NCCL, UCX_LOG_LEVEL=info for UCX."}}},
          {"log.sglang-kv-timeout",
           kError,
           {{"fail to receive KV Cache transfer done signal"}, {"timed out after", "in KVPoll."}},
           "a KV transfer did not finish in time",
           "Decode waited for a KV cache, and its completion never arrived.",
           {{"A NIC of one end is down, or loses packets.",
             {"rdma.port-down", "counters.out-of-sequence", "counters.local-ack-timeout"},
             "Run viaduct doctor on both nodes, and viaduct doctor --peer HOST."},
            {"Prefill is overloaded, or died.",
             {},
             "Look at prefill's log. Lower the load, or raise "
             "SGLANG_DISAGGREGATION_WAITING_TIMEOUT."}}},
          {"log.pd-unsupported",
           kError,
           {{"PD Disaggregation does NOT support PD"}},
           "prefill and decode have different parallelism",
           "This model needs the same tensor parallelism for prefill and decode.",
           {{"Prefill and decode have different TP sizes.", {}, "Set the same TP size on both."}}}};
}

std::vector<KnownText> storageTexts() {
  return {{"log.cufile",
           kError,
           {{"cuFileHandleRegister", "5008"}},
           "GPUDirect Storage is not available",
           "cuFile found no nvidia-fs driver, or the file system does not support it.",
           {{"nvidia-fs is not loaded.",
             {},
             "modprobe nvidia-fs, and check with /usr/local/cuda/gds/tools/gdscheck -p. Or use the "
             "POSIX backend."}}},
          {"log.plugin-cuda",
           kWarning,
           {{"Failed to load plugin", "libcudart.so"}},
           "a NIXL plugin needs another CUDA version",
           "The plugin was built for a CUDA release that the image does not have.",
           {{"The wheel is for another CUDA release.",
             {},
             "Install the wheel of the image's CUDA: nixl-cu12 or nixl-cu13."}}}};
}

}  // namespace

std::vector<KnownText> engineTexts() {
  std::vector<KnownText> out = nixlTexts();
  for (KnownText& text : cacheTexts()) out.push_back(text);
  for (KnownText& text : storageTexts()) out.push_back(text);
  return out;
}

}  // namespace viaduct::diag
