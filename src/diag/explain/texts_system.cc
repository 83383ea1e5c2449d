// Texts of the kernel log, the GPU driver, and limits of the process.
#include "diag/explain/texts.h"

namespace viaduct::diag {
namespace {

using enum TextKind;

constexpr std::string_view kPassthrough =
    "Boot with iommu=pt (x86) or iommu.passthrough=1 (arm64). On OpenShift, set it in a "
    "MachineConfig: kernelArguments: [iommu=pt].";

std::vector<KnownText> iommuTexts() {
  return {
      {"log.iommu-fault",
       kError,
       {{"AMD-Vi: Event logged [IO_PAGE_FAULT"},
        {"DMAR: [DMA", "fault addr"},
        {"arm-smmu-v3", "event 0x10 received"}},
       "the IOMMU blocked a device's access to memory",
       "A device used an address that its IOMMU tables do not have. The line names the device.",
       {{"The IOMMU translates the addresses of a NIC or GPU.",
         {"iommu.translated", "kernel-log.page-faults"},
         kPassthrough},
        {"A driver or a device has a fault.",
         {},
         "Compare the device address in the line with lspci, and update its firmware."}}},
      {"log.iommu-translated",
       kWarning,
       {{"iommu: Default domain type: Translated"}},
       "the kernel translates DMA addresses by default",
       "This is the default at boot. The type of the NIC's and the GPU's own groups decides.",
       {{"The groups of NIC and GPU translate addresses.", {"iommu.translated"}, kPassthrough}}},
      {"log.iommu-encryption",
       kWarning,
       {{"Disabling default IOMMU Passthrough"}},
       "memory encryption turned IOMMU passthrough off",
       "The kernel ignores iommu=pt as a default while memory encryption is on.",
       {{"The groups of NIC and GPU translate addresses.",
         {"iommu.translated"},
         "Turn memory encryption off (mem_encrypt=off), or keep GPUDirect off."}}},
      {"log.iommu-passthrough",
       kGood,
       {{"iommu: Default domain type: Passthrough"}},
       "the kernel passes DMA addresses through",
       "Devices use physical addresses unless a group has another type.",
       {}}};
}

std::vector<KnownText> pcieTexts() {
  return {{"log.pcie-limited",
           kWarning,
           {{"available PCIe bandwidth, limited by"}},
           "a PCIe link is slower than the device",
           "The kernel names the bandwidth, the slowest link, and the bandwidth of the device.",
           {{"The slot, riser or switch has fewer lanes or an older generation.",
             {"pcie.upstream", "pcie.speed", "pcie.width"},
             "Move the card to a slot of its generation and width."},
            {"The link was trained at a lower speed: bad contact, cable or firmware.",
             {"pcie.speed", "pcie.width", "pcie.errors"},
             "Reseat the card, and update the firmware of card and board."}}},
          {"log.aer-uncorrected",
           kError,
           {{"PCIe Bus Error: severity=Uncorrect"}, {"AER: Uncorrect"}},
           "a PCIe device reported an error that lost data",
           "The device or its slot is faulty. The driver may have reset the device.",
           {{"The card, slot or cable is faulty.",
             {"pcie.errors"},
             "Drain the node. Reseat or replace the card."}}},
          {"log.aer-corrected",
           kWarning,
           {{"PCIe Bus Error: severity=Correct"}, {"AER: Correct"}},
           "a PCIe link repeats damaged packets",
           "Each error costs time and no data. Many of them slow the link down.",
           {{"The contact or the cable is bad.",
             {"pcie.errors", "pcie.speed", "pcie.width"},
             "Reseat the card, or replace cable or riser."}}}};
}

std::vector<KnownText> gpuTexts() {
  return {
      {"log.peermem-load",
       kError,
       {{"could not insert 'nvidia_peermem'"},
        {"could not insert 'nv_peer_mem'"},
        {"nvidia_peermem: disagrees about version of symbol"},
        {"nv_peer_mem: disagrees about version of symbol"},
        {"nvidia_peermem: Unknown symbol"},
        {"nv_peer_mem: Unknown symbol"}},
       "nvidia_peermem could not be loaded",
       "The module does not fit ib_core of the running kernel, so NICs cannot use it to reach GPU "
       "memory.",
       {{"The module was built against another OFED, or ib_core has no peer memory interface.",
         {"gpu.peermem-symbols"},
         "Reinstall the GPU driver after OFED. GPU operator: driver.rdma.useHostMofed=true."},
        {"dma-buf is available, and the module is not needed.",
         {},
         "Leave the module out: GPU operator driver.rdma.enabled=false."}}},
      {"log.cuda-802",
       kError,
       {{"CUDA", "system not yet initialized"},
        {"Cuda failure", "system not yet initialized"},
        {"cuda", "system not yet initialized"},
        {"802", "system not yet initialized"}},
       "CUDA cannot use the GPUs yet (error 802)",
       "The NVSwitches are not set up, or libcuda does not fit the kernel module.",
       {{"The fabric manager does not run.",
         {},
         "systemctl enable --now nvidia-fabricmanager, of the driver's exact version."},
        {"libcuda comes from a compat folder and is newer than the kernel module.",
         {"gpu.stub-driver"},
         "Remove the compat folder from LD_LIBRARY_PATH."}}}};
}

std::vector<KnownText> cudaTexts() {
  return {{"log.cuda-803",
           kError,
           {{"unsupported display driver / cuda driver combination"},
            {"Driver/library version mismatch"}},
           "libcuda does not fit the driver's kernel module (error 803)",
           "CUDA starts only if libcuda.so.1 and the loaded kernel module have one version.",
           {{"The driver was updated, and the old kernel module is still loaded.",
             {"gpu-access.driver-mismatch"},
             "Restart the node, or reload the modules: rmmod nvidia_uvm nvidia; modprobe nvidia."},
            {"The image has a libcuda of its own, or a compat folder before the driver's.",
             {"gpu-access.driver-mismatch", "gpu.stub-driver"},
             "Remove it from the image. The container runtime adds the node's."}}},
          {"log.cuda-no-device",
           kError,
           {{"no CUDA-capable device is detected"}, {"CUDA_ERROR_NO_DEVICE"}},
           "CUDA finds no GPU (error 100)",
           "The process sees no GPU, although libcuda is there.",
           {{"The container has no GPU, or not all device files.",
             {"gpu-access.no-gpu", "gpu-access.no-device-files"},
             "Kubernetes: resources.limits nvidia.com/gpu. Docker: --gpus all."},
            {"CUDA_VISIBLE_DEVICES hides the GPUs, or names one that is not there.",
             {"gpu-access.visible-devices", "gpu-access.hidden-gpus"},
             "unset CUDA_VISIBLE_DEVICES"},
            {"The driver is not loaded.", {"gpu.no-driver"}, "modprobe nvidia"}}},
          {"log.cuda-ipc",
           kError,
           {{"cuIpcOpenMemHandle", "invalid"},
            {"cudaIpcOpenMemHandle", "invalid"},
            {"cuIpcGetMemHandle", "invalid"},
            {"cudaIpcGetMemHandle", "invalid"}},
           "CUDA IPC cannot share this GPU memory",
           "Another process cannot open the memory, so copies take a slower way or fail.",
           {{"Memory of expandable segments has no CUDA IPC handle.",
             {"variables.pytorch-cuda-alloc-conf"},
             "Unset PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."},
            {"The processes are in containers with their own namespaces.",
             {"gpu-access.own-namespaces"},
             "One pod with shareProcessNamespace: true. Docker: --ipc=host --pid=host."},
            {"The process does not see the GPU of the memory, or MIG divides it.",
             {"gpu-access.hidden-gpus", "gpu-access.mig"},
             "Give both processes all GPUs, and choose with cudaSetDevice."}}},
          {"log.cuda-peer",
           kError,
           {{"peer access is not supported between these two devices"},
            {"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"}},
           "two GPUs cannot reach each other's memory (error 217)",
           "The driver offers no P2P between these GPUs, over NVLink or PCIe.",
           {{"There is only PCIe between them, and this kind of GPU or board has no P2P over it.",
             {"gpu.pairs-over-pcie"},
             "nvidia-smi topo -p2p r shows the pairs. Copies go through host memory."},
            {"MIG divides a GPU.", {"gpu-access.mig"}, "Use whole GPUs: nvidia-smi -mig 0."}}}};
}

std::vector<KnownText> limitTexts() {
  return {
      {"log.shm",
       kError,
       {{"/dev/shm", "No space left on device"},
        {"No space left on device", "/dev/shm"},
        {"shmat", "Invalid argument"}},
       "shared memory is full or refused",
       "Processes of one host exchange data through shared memory, and none is left.",
       {{"/dev/shm has 64 MiB, the default of containers.",
         {"memory.shm-small", "memory.shm-full"},
         "Kubernetes: mount an emptyDir with medium: Memory at /dev/shm. Docker: --shm-size=16g "
         "or --ipc=host."},
        {"The limits of System V shared memory are low.",
         {"memory.shm-small", "memory.shm-full"},
         "sysctl -w kernel.shmmax=SIZE kernel.shmmni=4096. Or set UCX_TLS=^sysv."}}},
      {"log.cma",
       kWarning,
       {{"process_vm_readv", "Operation not permitted"},
        {"process_vm_writev", "Operation not permitted"}},
       "a process may not copy from another process",
       "Copies within the node take a slower way.",
       {{"ptrace_scope, seccomp or different user namespaces forbid the copy.",
         {"copy.cma-denied"},
         "Add SYS_PTRACE to the container, or sysctl -w kernel.yama.ptrace_scope=0."}}},
      {"log.io-uring",
       kWarning,
       {{"io_uring", "Operation not permitted"}},
       "io_uring is forbidden",
       "File access takes a slower way.",
       {{"seccomp or io_uring_disabled forbids it.",
         {"copy.io-uring-denied"},
         "sysctl -w kernel.io_uring_disabled=0, and a seccomp profile that allows "
         "io_uring_setup."}}},
      {"log.open-files",
       kError,
       {{"Too many open files"}},
       "the process has too many open files",
       "Each connection and each RDMA device takes file descriptors.",
       {{"The limit is low.",
         {"limits.open-files"},
         "ulimit -n 65536. Docker: --ulimit nofile=65536."}}},
      {"log.oom",
       kError,
       {{"Memory cgroup out of memory: Killed process"}, {"oom-kill:constraint="}},
       "the kernel killed a process for want of memory",
       "The container or the node used all of its memory.",
       {{"The memory limit of the pod is too small.",
         {"limits.memory"},
         "Raise resources.limits.memory."}}}};
}

}  // namespace

std::vector<KnownText> systemTexts() {
  std::vector<KnownText> out = iommuTexts();
  for (auto* more : {&pcieTexts, &gpuTexts, &cudaTexts, &limitTexts})
    for (KnownText& text : more()) out.push_back(text);
  return out;
}

}  // namespace viaduct::diag
