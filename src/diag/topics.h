// The doctor's topics: each is a file check_<name>.cc with one function. Threads: one at a time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "diag/node.h"
#include "diag/report.h"

namespace viaduct::diag {

// A check examines a node and reports findings. If all is in order, it reports at least one fine().
struct Topic {
  std::string_view name, about;
  void (*check)(const Node&, Report&);
  bool needs_sys = false;   // it examines devices: without /sys it would find them absent
  bool of_process = false;  // it examines this process and its container, not the node
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

// Runs the topics, all or those named, and adds a finding for each unreadable file. Without /sys,
// one finding names all topics that need it. For all pods of a node, topics about this process run
// only if they are named.
Report diagnose(const Node& node, std::span<const std::string> only = {});

}  // namespace viaduct::diag
