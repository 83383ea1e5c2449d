// The doctor's topics: each is a file check_<name>.cc with one function. Threads: one at a time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "diag/findings.h"
#include "diag/node.h"

namespace viaduct::diag {

// A check examines a node and reports findings. If all is in order, it reports at least one fine().
struct Topic {
  std::string_view name, about;
  void (*check)(const Node&, Findings&);
  bool needs_sys = false;   // it examines devices: without /sys it would find them absent
  bool of_process = false;  // it examines this process and its container, not the node
};
std::span<const Topic> topics();

void checkClock(const Node& node, Findings& findings);
void checkCopy(const Node& node, Findings& findings);
void checkCounters(const Node& node, Findings& findings);
void checkCpu(const Node& node, Findings& findings);
void checkEfa(const Node& node, Findings& findings);
void checkGpu(const Node& node, Findings& findings);
void checkGpuAccess(const Node& node, Findings& findings);
void checkIommu(const Node& node, Findings& findings);
void checkKernelLog(const Node& node, Findings& findings);
void checkKubernetes(const Node& node, Findings& findings);
void checkLibraries(const Node& node, Findings& findings);
void checkLimits(const Node& node, Findings& findings);
void checkMemory(const Node& node, Findings& findings);
void checkNames(const Node& node, Findings& findings);
void checkNetwork(const Node& node, Findings& findings);
void checkPcie(const Node& node, Findings& findings);
void checkPrivacy(const Node& node, Findings& findings);
void checkRdma(const Node& node, Findings& findings);
void checkRoce(const Node& node, Findings& findings);
void checkSpeed(const Node& node, Findings& findings);
void checkSriov(const Node& node, Findings& findings);
void checkStorage(const Node& node, Findings& findings);
void checkVariables(const Node& node, Findings& findings);

// Runs the topics, all or those named, and adds a finding for each unreadable file. Without /sys,
// one finding names all topics that need it. In a diagnosis for all pods, topics about this process
// run only if they are named.
Findings diagnose(const Node& node, std::span<const std::string> only = {});

}  // namespace viaduct::diag
