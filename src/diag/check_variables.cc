// Checks for variables that defeat RDMA on this node.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include "base/lists.h"
#include "diag/environ.h"
#include "diag/topics.h"
#include "diag/variable_checks.h"

namespace viaduct::diag {
namespace {

constexpr std::array<std::string_view, 10> kTransportPrefixes{
    "VIADUCT_FAULTS", "NCCL_",    "UCX_",  "FI_",        "OFI_",
    "GLOO_",          "NVSHMEM_", "NIXL_", "TP_SOCKET_", "DYN_KVBM_NIXL"};
constexpr std::array<std::string_view, 4> kTransportNames{
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "SGLANG_DISAGGREGATION_NIXL_BACKEND",
    "TRTLLM_NIXL_KVCACHE_BACKEND"};

std::string codeOf(std::string_view name) {
  std::string out = "variables.";
  for (const char c : name)
    out += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::vector<std::string> transportNames(const Variables& variables) {
  std::vector<std::string> out;
  for (const auto& [name, value] : variables)
    if (isTransportVariable(name)) out.push_back(printable(name));
  return out;
}

bool warnsBeyond(const Findings& findings, std::size_t first) {
  return std::any_of(findings.all().begin() + static_cast<std::ptrdiff_t>(first),
                     findings.all().end(),
                     [](const Finding& one) { return one.severity > Severity::kInfo; });
}

}  // namespace

void VariableScene::add(const std::string& name, Finding finding) const {
  const std::string* const value = node.variable(name);
  const std::string text =
      fmt::format("{}={}", name, printable(value == nullptr ? std::string() : *value));
  std::vector<Evidence> evidence{
      {node.variables_from.empty() ? "environment" : node.variables_from, text}};
  if (!pod.given.devices.empty())
    evidence.push_back({"RDMA devices of this pod", namesOf(pod.given.devices)});
  finding.evidence.insert(finding.evidence.begin(), evidence.begin(), evidence.end());
  finding.what = fmt::format("{} {}", text, finding.what);
  if (finding.code.empty()) finding.code = codeOf(name);
  if (finding.fix.empty()) finding.fix = fmt::format("unset {}", name);
  findings.add(std::move(finding));
}

bool isTransportVariable(std::string_view name) {
  return std::ranges::any_of(kTransportPrefixes,
                             [&](std::string_view one) { return name.starts_with(one); }) ||
         base::contains(kTransportNames, name);
}

// Reads the variables of process 1, because a wrapper may set some at the container's start.
// `kubectl exec` shells do not get them.
void checkProcessOne(const VariableScene& scene) {
  constexpr std::size_t kMostEnvironment = std::size_t{4} << 20U;
  constexpr auto kFile = "/proc/1/environ";
  if (scene.node.variables_from != "this process") return;
  const FileText text = scene.node.tree.readBytes(kFile, kMostEnvironment);
  std::vector<std::string> missing;
  for (const auto& [name, value] : variablesIn(text.text))
    if (isTransportVariable(name) && !scene.node.variables.contains(name))
      missing.push_back(printable(name));
  if (missing.empty()) return;
  const std::string names = fmt::format("{}", fmt::join(missing, ", "));
  scene.findings.add(
      {.severity = Severity::kWarning,
       .code = "variables.only-in-process-1",
       .what = fmt::format("Process 1 has variables that this process lacks: {}.", names),
       .evidence = {{kFile, names}},
       .cause = "A wrapper set them when the container started. A shell of kubectl exec gets only "
                "the variables of the manifest.",
       .fix = scene.node.tree.has("/run/viaduct/env") ? ". /run/viaduct/env"
                                                      : "eval \"$(viaduct env --from 1)\"",
       .gain = "Commands in this shell use the same devices as the container's program."});
}

void checkVariables(const Node& node, Findings& findings) {
  if (node.variables.empty() && node.variables_from.empty())
    return findings.add({.severity = Severity::kUnknown,
                         .code = "variables.unknown",
                         .what = "Could not look at the variables of the program.",
                         .cause = "The folder of files does not hold them.",
                         .fix = "Run the doctor in the pod: viaduct doctor --only variables"});
  const VariableScene scene{.node = node, .pod = podView(node), .findings = findings};
  const std::size_t before = findings.all().size();
  checkSwitches(scene);
  checkNcclDevices(scene);
  checkGidIndices(scene);
  checkInterfaceNames(scene);
  checkUcx(scene);
  checkLibraryPath(scene);
  checkProcessOne(scene);
  if (warnsBeyond(findings, before)) return;
  const std::vector<std::string> names = transportNames(node.variables);
  findings.fine(names.empty()
                    ? "No variable of NCCL, UCX or libfabric is set."
                    : fmt::format("No variable defeats RDMA here: {}.", fmt::join(names, ", ")));
}

}  // namespace viaduct::diag
