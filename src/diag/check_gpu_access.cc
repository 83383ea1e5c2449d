// Checks that this process can use the GPUs: libcuda, device files, and CUDA IPC with other
// containers.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/text.h"
#include "diag/hardware.h"
#include "diag/peer_memory.h"
#include "diag/process_facts.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

constexpr auto kControl = "/dev/nvidiactl", kManaged = "/dev/nvidia-uvm";
constexpr auto kVisible = "CUDA_VISIBLE_DEVICES", kAbilities = "NVIDIA_DRIVER_CAPABILITIES";
constexpr auto kLibrary = "libcuda.so.1";
// The first driver with CUDA 11.0.
constexpr unsigned kOldestDriver = 450;

constexpr auto kGiveGpu =
    "In the pod: resources: {limits: {nvidia.com/gpu: 1}}\n"
    "Docker: --gpus all\n"
    "On the node itself: nvidia-modprobe -c 0 -u";

// The GPUs of a node, and how many of them this container has.
struct SeenGpus {
  std::string driver = {};             // "580.95.05"
  std::size_t all = 0;                 // on PCI
  std::vector<unsigned> numbers = {};  // each N of the /dev/nvidiaN that the driver names
  std::size_t given = 0;               // device files of `numbers` that exist here
};

SeenGpus seenGpus(const Tree& tree, const std::vector<PciFunction>& gpus, std::string driver) {
  SeenGpus out{.driver = std::move(driver), .all = gpus.size()};
  for (const PciFunction& gpu : gpus) {
    const std::string number = valueIn(driverInformation(tree, gpu), "Device Minor");
    const auto minor = base::numberIn<unsigned>(number);
    if (!minor) continue;
    out.numbers.push_back(*minor);
    out.given += tree.has(fmt::format("/dev/nvidia{}", *minor)) ? 1U : 0U;
  }
  return out;
}

void addNoGpu(const SeenGpus& seen, Findings& findings) {
  findings.add({.code = "gpu-access.no-gpu",
                .what = fmt::format("None of the node's {} GPUs has a device file here.", seen.all),
                .evidence = {{kControl, "absent"}},
                .cause = "Nobody asked for a GPU, or the NVIDIA container runtime is not in use.",
                .fix = kGiveGpu});
}

void addNoDeviceFiles(std::vector<Evidence> evidence, Findings& findings) {
  const auto names = base::mapped(evidence, &Evidence::source);
  findings.add(
      {.severity = Severity::kWarning,
       .code = "gpu-access.no-device-files",
       .what = fmt::format("CUDA needs {}, which this container or node lacks.", listed(names)),
       .evidence = std::move(evidence),
       .cause = "The container got some device files only, or nothing has made them yet.",
       .fix = kGiveGpu,
       .gain = "CUDA starts (without: no CUDA-capable device, unknown error)."});
}

// Returns whether this container has GPUs at all.
bool checkDeviceFiles(const Tree& tree, const SeenGpus& seen, Findings& findings) {
  std::vector<Evidence> missing;
  for (const char* file : {kControl, kManaged})
    if (!tree.has(file)) missing.push_back({file, "absent"});
  if (seen.given == 0) missing.push_back({"/dev/nvidiaN", "absent for each GPU"});
  if (missing.size() == 3) {
    addNoGpu(seen, findings);
    return false;
  }
  if (!missing.empty()) addNoDeviceFiles(std::move(missing), findings);
  return true;
}

// The copy of libcuda that the loader takes. Null: none. Stubs and compatibility packages are left
// to the topic `gpu`.
const Live::Library* loadedLibrary(const Live& live) {
  return base::firstOf(live.libraries, [](const Live::Library& one) {
    return one.name == kLibrary && one.path.find("/stubs/") == std::string::npos &&
           one.path.find("/compat/") == std::string::npos;
  });
}

void addNoLibrary(const Node& node, Findings& findings) {
  const std::string* const abilities = node.variable(kAbilities);
  const bool unwanted = abilities != nullptr && abilities->find("compute") == std::string::npos &&
                        abilities->find("all") == std::string::npos;
  findings.add({.severity = Severity::kWarning,
                .code = "gpu-access.no-library",
                .what = "There is no libcuda.so.1 beside the GPUs.",
                .evidence = {{kLibrary, "not where the loader looks"},
                             {kAbilities, abilities == nullptr ? "unset" : *abilities}},
                .cause = unwanted ? "The container asks for parts of the driver without compute."
                                  : "The container runtime did not add the driver's library, or "
                                    "the node has the kernel modules alone.",
                .fix = unwanted ? "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
                                : "Docker: --gpus all; Kubernetes: runtimeClassName: nvidia\n"
                                  "Debian, on the node: apt-get install libcuda1",
                .gain = "Programs can use the GPUs."});
}

void addMismatch(const Live::Library& library, const std::string& driver, Findings& findings) {
  findings.add(
      {.severity = Severity::kFailure,
       .code = "gpu-access.driver-mismatch",
       .what =
           fmt::format("libcuda {} does not fit the loaded driver {}.", library.version, driver),
       .evidence = {{library.path, library.version}, {kDriverVersion, driver}},
       .cause = "The driver was updated and its old kernel module is still loaded, or the image "
                "has a libcuda of its own.",
       .fix = "On the node: restart it, or reload the modules: rmmod nvidia_uvm nvidia; modprobe "
              "nvidia\n"
              "In an image: remove its libcuda; the container runtime adds the node's.",
       .gain = "CUDA starts (without: error 803, Driver/library version mismatch)."});
}

void checkLibrary(const Node& node, const SeenGpus& seen, Findings& findings) {
  if (node.live.libraries.empty())
    return findings.add({.severity = Severity::kUnknown,
                         .code = "gpu-access.library-unknown",
                         .what = "Could not look for libcuda.",
                         .cause = "The folder of files holds no list of libraries.",
                         .fix = "On the node: viaduct doctor --only gpu-access"});
  const Live::Library* const library = loadedLibrary(node.live);
  if (library == nullptr) return addNoLibrary(node, findings);
  // A file name without the full version tells nothing.
  if (library->version.find('.') != std::string::npos && library->version != seen.driver)
    return addMismatch(*library, seen.driver, findings);
  findings.fine(fmt::format("libcuda of the driver {} is here.", seen.driver));
}

void checkAge(const SeenGpus& seen, Findings& findings) {
  const VersionNumbers version = versionNumbers(seen.driver);
  if (version.empty() || version.front() >= kOldestDriver) return;
  findings.add(
      {.severity = Severity::kWarning,
       .code = "gpu-access.driver-old",
       .what = fmt::format("The NVIDIA driver {} is older than {}.", seen.driver, kOldestDriver),
       .evidence = {{kDriverVersion, seen.driver}},
       .cause = "Viaduct moves GPU memory with calls and code of CUDA 11.0.",
       .fix = "Install a driver of the branch 535 or later.",
       .gain = "Viaduct can move GPU memory."});
}

// Reads the numbers of "0,2,3". No value: an entry is no number, such as "GPU-7c2e1f04" or "-1".
std::optional<std::vector<std::size_t>> numbersIn(const std::string& list) {
  std::vector<std::size_t> out;
  for (const std::string& part : base::partsOf(list)) {
    const auto number = base::numberIn<std::size_t>(part);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

void addAbsentGpu(const std::string& list, std::size_t absent, const SeenGpus& seen,
                  Findings& findings) {
  findings.add(
      {.severity = Severity::kWarning,
       .code = "gpu-access.visible-devices",
       .what = fmt::format("CUDA_VISIBLE_DEVICES names GPU {}, and there are {} GPUs here.", absent,
                           seen.given),
       .evidence = {{kVisible, list}},
       .cause = "The numbers count the GPUs of this container, from 0. CUDA ignores a "
                "wrong entry and all that follow it.",
       .fix = "unset CUDA_VISIBLE_DEVICES",
       .gain = "The process sees the GPUs that the container has."});
}

// CUDA IPC opens memory of a GPU only in a process that sees this GPU.
void checkVisible(const Node& node, const SeenGpus& seen, Findings& findings) {
  std::size_t visible = seen.given;
  const std::string* const list = node.variable(kVisible);
  if (list != nullptr) {
    const auto numbers = numbersIn(*list);
    const auto parts = base::partsOf(*list);
    visible = numbers ? numbers->size() : list->starts_with('-') ? 0 : parts.size();
    if (numbers)
      if (const auto* const absent =
              base::firstOf(*numbers, [&](auto n) { return n >= seen.given; }))
        return addAbsentGpu(*list, *absent, seen, findings);
  }
  if (visible >= seen.all)
    return findings.fine(fmt::format("The process sees all {} GPUs.", seen.all));
  findings.add(
      {.code = "gpu-access.hidden-gpus",
       .what = fmt::format("This process sees {} of the node's {} GPUs.", visible, seen.all),
       .evidence = {{"/dev/nvidia*", fmt::format("{} GPUs", seen.given)},
                    {kVisible, list == nullptr ? "unset" : *list}},
       .cause = "CUDA IPC and P2P reach only memory of GPUs that the process sees.",
       .fix =
           "Where processes of one node exchange GPU memory: one container with all their GPUs,\n"
           "no CUDA_VISIBLE_DEVICES, and in each process torch.cuda.set_device(N)."});
}

// The kernel gives its first namespaces these numbers: include/linux/proc_ns.h.
constexpr std::uint64_t kFirstIpc = 0xefffffff, kFirstPid = 0xeffffffc;

void checkNamespaces(const Live& live, Findings& findings) {
  if (!live.ipc_namespace || !live.pid_namespace) return;
  const bool ipc = *live.ipc_namespace == kFirstIpc, pid = *live.pid_namespace == kFirstPid;
  if (ipc && pid)
    return findings.fine("CUDA IPC may reach all processes of the node: no namespace is between.");
  const auto said = [](std::uint64_t number, bool first) {
    return fmt::format("{} ({})", number, first ? "the node's" : "the container's own");
  };
  findings.add(
      {.code = "gpu-access.own-namespaces",
       .what = fmt::format("CUDA IPC does not reach other containers: this one has its own {}.",
                           ipc   ? "namespace of processes"
                           : pid ? "namespace of IPC"
                                 : "namespaces of IPC and of processes"),
       .evidence = {{"/proc/self/ns/ipc", said(*live.ipc_namespace, ipc)},
                    {"/proc/self/ns/pid", said(*live.pid_namespace, pid)}},
       .cause = "Containers are separated so unless their manifests say otherwise.",
       .fix = "For containers that exchange GPU memory on one node:\n"
              "- one pod: shareProcessNamespace: true\n"
              "- several pods: hostIPC: true, hostPID: true\n"
              "- Docker: --ipc=host --pid=host"});
}

void checkMig(const Tree& tree, const SeenGpus& seen, Findings& findings) {
  Cases divided;
  for (const unsigned number : seen.numbers) {
    const std::string folder = fmt::format("/proc/driver/nvidia/capabilities/gpu{}/mig", number);
    const auto names = tree.list(folder);
    const auto parts = std::ranges::count_if(
        names, [](const std::string& name) { return name.starts_with("gi"); });
    if (parts != 0)
      divided.add(std::to_string(number), {folder, fmt::format("{} instances", parts)});
  }
  if (divided.empty()) return;
  findings.add({.code = "gpu-access.mig",
                .what = fmt::format("MIG divides GPU {}: it has no P2P, and no CUDA IPC between "
                                    "its instances.",
                                    listed(divided.names)),
                .evidence = std::move(divided.evidence),
                .cause = "MIG separates the memory of its instances.",
                .fix = "For jobs that exchange GPU memory, use whole GPUs: nvidia-smi -mig 0"});
}

}  // namespace

void checkGpuAccess(const Node& node, Findings& findings) {
  const std::vector<PciFunction> gpus = nvidiaGpus(node.tree);
  if (gpus.empty()) return findings.fine("No NVIDIA GPU: nothing to check.");
  const SeenGpus seen = seenGpus(node.tree, gpus, driverVersion(node.tree.line(kDriverVersion)));
  if (seen.driver.empty()) return findings.fine("The driver is not loaded: see the topic gpu.");
  if (!checkDeviceFiles(node.tree, seen, findings)) return;
  checkAge(seen, findings);
  checkLibrary(node, seen, findings);
  checkVisible(node, seen, findings);
  checkNamespaces(node.live, findings);
  checkMig(node.tree, seen, findings);
}

}  // namespace viaduct::diag
