// Texts of UCX.
#include "diag/explain/texts.h"

namespace viaduct::diag {
namespace {

using enum TextKind;

std::vector<KnownText> devxTexts() {
  return {{"log.ucx-peer-restarted",
           kError,
           {{"mlx5dv_devx_obj_modify(opcode=0x503)", "failed"}},
           "a queue pair could not connect: the peer restarted",
           "The peer's queue pair does not exist any more.",
           {{"The peer's process restarted after it sent its address.",
             {},
             "Exchange addresses again, or restart both ends."}}},
          {"log.ucx-devx-abi",
           kError,
           {{"mlx5dv_devx_obj_destroy(SRQ) failed"}},
           "UCX and the NIC driver of the host do not fit",
           "UCX uses an interface of the mlx5 driver that the host does not have in this form.",
           {{"rdma-core in the container and the driver of the host have different releases.",
             {},
             "Install rdma-core of the host's OFED release in the image. Or set "
             "UCX_IB_MLX5_DEVX_OBJECTS to the empty string."}}},
          {"log.ucx-uar",
           kError,
           {{"mlx5dv_devx_alloc_uar", "failed"}},
           "the NIC has no doorbell pages left",
           "Each UCX worker takes doorbell pages (UAR) of the NIC, and all are taken.",
           {{"Too many processes, workers or threads use this NIC.",
             {"limits.rdma"},
             "Use fewer UCX workers, or give the processes different NICs (UCX_NET_DEVICES)."}}},
          {"log.ucx-vhca",
           kWarning,
           {{"mlx5dv_devx_general_cmd(ALLOW_OTHER_VHCA_ACCESS)", "failed"}},
           "a virtual function refuses keys of other functions",
           "UCX asks for a feature that virtual functions do not have, and goes on without it.",
           {{"This message is harmless.", {}, "Nothing has to be done."}}}};
}

std::vector<KnownText> missingTransportTexts() {
  return {{"log.ucx-no-am",
           kError,
           {{"no active messages transport"}},
           "UCX found no transport to the peer",
           "No transport of UCX_TLS and no device of UCX_NET_DEVICES reaches the peer.",
           {{"The container has no RDMA device.",
             {"rdma.none", "rdma.no-uverbs"},
             "Request the device in the pod, for example rdma/hca_shared_devices_a: 1 or "
             "vpc.amazonaws.com/efa: 1."},
            {"UCX_TLS or UCX_NET_DEVICES excludes all transports that reach the peer.",
             {"variables.ucx-tls", "variables.ucx-tls-cuda", "variables.ucx-net-devices"},
             "Unset both. UCX then chooses."},
            {"The port is not active, or a bonded device has LID 0.",
             {"rdma.port-down", "rdma.no-lid"},
             "Look at the ports with viaduct doctor."},
            {"rdma-core in the container and the driver of the host do not fit.",
             {},
             "Install rdma-core of the host's OFED release in the image."}}},
          {"log.ucx-no-protocol",
           kError,
           {{"cannot find remote protocol for"}, {"No zero-copy protocol found for"}},
           "UCX has no protocol for this kind of memory",
           "No selected transport reads or writes this memory kind at the peer.",
           {{"UCX is older than the CUDA version or the GPU (CUDA 13, GB300).",
             {},
             "Install a UCX release that supports them, on both ends."},
            {"UCX_TLS excludes the RDMA transports or the CUDA transports.",
             {"variables.ucx-tls", "variables.ucx-tls-cuda"},
             "Unset UCX_TLS, or add rc and cuda."},
            {"The NIC cannot reach GPU memory.",
             {"gpu.no-peer-memory"},
             "Load nvidia_peermem, or use the open kernel module with dma-buf."}}},
          {"log.ucx-no-cuda",
           kError,
           {{"transport", "'cuda_", "not available"}},
           "UCX has no CUDA transports",
           "UCX_TLS asks for CUDA transports that this UCX cannot load.",
           {{"UCX was built without CUDA, or its CUDA modules cannot load libcuda.",
             {},
             "Install UCX with CUDA, and run the container with the NVIDIA runtime. Check with "
             "ucx_info -d | grep cuda."}}}};
}

std::vector<KnownText> chosenTransportTexts() {
  return {{"log.ucx-tcp-lost",
           kError,
           {{"tcp_ep", "send", "failed", "Input/output error"}, {"UCX", "Endpoint timeout"}},
           "UCX used TCP, and the connection ended",
           "The transfer did not run over RDMA, and its TCP connection broke.",
           {{"UCX could not use RDMA and took TCP without a message.",
             {"rdma.none", "rdma.no-uverbs", "variables.ucx-tls", "variables.ucx-tls-cuda",
              "variables.ucx-net-devices"},
             "Run ucx_info -d: it has to list rc_mlx5 or dc_mlx5. Unset UCX_TLS and "
             "UCX_NET_DEVICES."},
            {"The peer's process died.", {}, "Look at the end of the peer's log."}}},
          {"log.ucx-rdma",
           kGood,
           {{"UCX  INFO", "cfg", "rc_mlx5/"},
            {"UCX  INFO", "cfg", "dc_mlx5/"},
            {"UCX  INFO", "cfg", "rc_verbs/"}},
           "UCX connects over RDMA",
           "The connection to this peer uses RDMA transports.",
           {}},
          {"log.ucx-tcp",
           kWarning,
           {{"UCX  INFO", "inter-node cfg", "tcp/"}, {"UCX  INFO", "ep_cfg[", "tcp/"}},
           "UCX connects over TCP",
           "The connection to this peer uses no RDMA transport.",
           {{"The container has no RDMA device that it may open.",
             {"rdma.none", "rdma.no-uverbs"},
             "Request the device in the pod, for example rdma/hca_shared_devices_a: 1."},
            {"UCX_TLS or UCX_NET_DEVICES excludes RDMA.",
             {"variables.ucx-tls", "variables.ucx-tls-cuda", "variables.ucx-net-devices"},
             "Unset both, and run viaduct env for values that fit."},
            {"This is an EFA node, which UCX does not use well.",
             {"variables.ucx-net-devices", "variables.ucx-tls"},
             "Choose the LIBFABRIC backend of NIXL."}}}};
}

KnownText gdrCopy() {
  return {"log.gdr-copy",
          kError,
          {{"GPU memory pin failed", "ret 22"},
           {"gdr_copy_from_mapping failed", "ret:22"},
           {"gdr_pin_buffer", "Failed"},
           {"gdr_pin_buffer", "failed"}},
          "gdrcopy cannot pin GPU memory",
          "The gdrdrv module is loaded, and the GPU driver refuses its request.",
          {{"gdrdrv does not fit the GPU driver, or the memory kind cannot be pinned.",
            {"gpu.no-gdrcopy", "variables.pytorch-cuda-alloc-conf"},
            "Set UCX_TLS=^gdr_copy. Or install a gdrdrv module that was built for this driver "
            "and kernel."}}};
}

}  // namespace

std::vector<KnownText> ucxTexts() {
  std::vector<KnownText> out = devxTexts();
  for (auto* more : {&missingTransportTexts, &chosenTransportTexts})
    for (KnownText& text : more()) out.push_back(text);
  out.push_back(gdrCopy());
  return out;
}

}  // namespace viaduct::diag
