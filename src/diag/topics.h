// The doctor's topics: each is one file check_<name>.cc with one function. Threads: one at a time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "diag/node.h"
#include "diag/report.h"

namespace viaduct::diag {

// A check looks at a node and reports findings, and for all that is in order at least one fine().
struct Topic {
  std::string_view name, about;
  void (*check)(const Node&, Report&);
  bool needs_sys = false;   // it looks at devices: without /sys it would take them for absent
  bool of_process = false;  // it looks at this process and its container, not at the node
};
std::span<const Topic> topics();

void checkClock(const Node& node, Report& report);
void checkCopy(const Node& node, Report& report);
void checkCounters(const Node& node, Report& report);
void checkCpu(const Node& node, Report& report);
void checkEfa(const Node& node, Report& report);
void checkGpu(const Node& node, Report& report);
void checkIommu(const Node& node, Report& report);
void checkKernelLog(const Node& node, Report& report);
void checkKubernetes(const Node& node, Report& report);
void checkLibraries(const Node& node, Report& report);
void checkLimits(const Node& node, Report& report);
void checkMemory(const Node& node, Report& report);
void checkNames(const Node& node, Report& report);
void checkNetwork(const Node& node, Report& report);
void checkPcie(const Node& node, Report& report);
void checkRdma(const Node& node, Report& report);
void checkRoce(const Node& node, Report& report);
void checkSriov(const Node& node, Report& report);
void checkVariables(const Node& node, Report& report);

// Runs the topics, all or those named, and adds a finding for each file that could not be read.
// Where there is no /sys, one finding names all topics that need it. For all pods of a node, topics
// about this process run only if they are named.
Report diagnose(const Node& node, std::span<const std::string> only = {});

}  // namespace viaduct::diag
