// Checks LD_LIBRARY_PATH for NCCL's plugin for EFA.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/lists.h"
#include "base/text.h"
#include "diag/name_list.h"
#include "diag/variable_checks.h"

namespace viaduct::diag {
namespace {

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
    return base::contains(folders, folder) || loaderKnows(tree, folder);
  };
  const auto* const installed =
      base::firstOf(kPluginFolders, [&](const char* one) { return tree.has(one); });
  if (installed == nullptr || std::ranges::any_of(kPluginFolders, known)) return;
  const std::string* const path = scene.node.variable("LD_LIBRARY_PATH");
  scene.findings.add(
      {.severity = Severity::kWarning,
       .code = "variables.aws-ofi-nccl",
       .what = fmt::format("The loader does not search {}, where aws-ofi-nccl lies.", *installed),
       .evidence = {{"LD_LIBRARY_PATH", path == nullptr ? "unset" : printable(*path)},
                    {"RDMA devices of this pod", namesOf(scene.pod.efa)}},
       .cause = "NCCL reaches EFA only through this plugin, and falls back to NET/Socket without "
                "it.",
       .fix = fmt::format("export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
                          *installed),
       .gain = "NCCL uses EFA instead of TCP."});
}

}  // namespace

void checkLibraryPath(const VariableScene& scene) {
  const std::string* const path = scene.node.variable("LD_LIBRARY_PATH");
  checkPlugin(scene, path == nullptr ? std::vector<std::string>() : base::partsOf(*path, ':'));
}

}  // namespace viaduct::diag
