// LD_LIBRARY_PATH: the driver's library, and NCCL's plugin for EFA.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "diag/name_list.h"
#include "diag/variable_checks.h"

namespace viaduct::diag {
namespace {

// "580.95.05" of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release ...".
std::string driverVersion(const Tree& tree) {
  std::istringstream words(tree.line("/proc/driver/nvidia/version"));
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return {};
}

// "580.159.01" of the file that libcuda.so.1 leads to; empty: the name has none.
std::string libraryVersion(const Tree& tree, const std::string& library) {
  const std::string file = tree.resolve(library);
  const auto at = file.find("libcuda.so.");
  return at == std::string::npos ? std::string() : file.substr(at + 11);
}

std::string majorOf(const std::string& version) { return version.substr(0, version.find('.')); }

void reportDriver(const VariableScene& scene, const std::string& folder) {
  const Tree& tree = scene.node.tree;
  const std::string library = folder + "/libcuda.so.1", mine = libraryVersion(tree, library),
                    kernel = driverVersion(tree);
  const bool stub = folder.find("/stubs") != std::string::npos;
  const bool compat = folder.find("/compat") != std::string::npos && mine != kernel &&
                      !kernel.empty() && majorOf(mine) == majorOf(kernel);
  if (!stub && !compat) return;
  scene.add("LD_LIBRARY_PATH",
            {.severity = Severity::kFailure,
             .code = stub ? "gpu.stub-driver" : "",
             .what = stub ? "leads to a stub of the driver's library."
                          : "leads to a driver's library of another version than the driver.",
             .evidence = {{library, mine.empty() ? "a stub" : mine},
                          {"/proc/driver/nvidia/version", kernel}},
             .cause = stub ? "A stub is for linking: each call of it fails."
                           : "Within one branch the compatibility library has to match the driver. "
                             "CUDA says \"system not yet initialized\".",
             .fix = fmt::format("Take {} out of LD_LIBRARY_PATH.", printable(folder)),
             .gain = "CUDA finds the driver, and GPU memory can be moved."});
}

// The loader takes the first library that it finds.
void checkDriver(const VariableScene& scene, const std::vector<std::string>& folders) {
  if (scene.pod.gpus == 0) return;
  for (const std::string& folder : folders)
    if (scene.node.tree.has(folder + "/libcuda.so.1")) return reportDriver(scene, folder);
}

constexpr std::array kPluginFolders{"/opt/amazon/ofi-nccl/lib", "/opt/amazon/ofi-nccl/lib64",
                                    "/opt/aws-ofi-nccl/lib", "/opt/aws-ofi-nccl/lib64",
                                    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu"};

bool loaderKnows(const Tree& tree, std::string_view folder) {
  for (const std::string& name : tree.list("/etc/ld.so.conf.d"))
    if (tree.read("/etc/ld.so.conf.d/" + name).text.find(folder) != std::string::npos) return true;
  return tree.read("/etc/ld.so.conf").text.find(folder) != std::string::npos;
}

void checkPlugin(const VariableScene& scene, const std::vector<std::string>& folders) {
  const Tree& tree = scene.node.tree;
  if (scene.pod.efa.empty() || scene.pod.gpus == 0) return;
  const auto known = [&](std::string_view folder) {
    return std::find(folders.begin(), folders.end(), folder) != folders.end() ||
           loaderKnows(tree, folder);
  };
  const auto installed = std::find_if(kPluginFolders.begin(), kPluginFolders.end(),
                                      [&](const char* one) { return tree.has(one); });
  if (installed == kPluginFolders.end() ||
      std::any_of(kPluginFolders.begin(), kPluginFolders.end(), known))
    return;
  const std::string* const path = scene.valueOf("LD_LIBRARY_PATH");
  scene.report.add(
      {.severity = Severity::kWarning,
       .code = "variables.aws-ofi-nccl",
       .what = fmt::format("The loader does not search {}, where aws-ofi-nccl lies.", *installed),
       .evidence = {{"LD_LIBRARY_PATH", path == nullptr ? "unset" : printable(*path)},
                    {"RDMA devices of this pod", namesOf(scene.pod.efa)}},
       .cause = "NCCL reaches EFA only through this plugin, and falls back to NET/Socket without "
                "it.",
       .fix = fmt::format("export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
                          *installed),
       .gain = "NCCL uses EFA in the place of TCP."});
}

}  // namespace

void checkLibraryPath(const VariableScene& scene) {
  const std::string* const path = scene.valueOf("LD_LIBRARY_PATH");
  const auto folders = path == nullptr ? std::vector<std::string>() : partsOf(*path, ':');
  checkDriver(scene, folders);
  checkPlugin(scene, folders);
}

}  // namespace viaduct::diag
