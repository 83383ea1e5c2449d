// Finds the lines of the kernel log that matter to RDMA. Threads: pure functions.
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace viaduct::diag {

// Lines of one kind: their number, the first one, and the PCI functions that they name.
struct LogLines {
  std::size_t count = 0;
  std::string first = {};
  std::set<std::string> functions = {};  // "0000:18:00.0"
};

struct KernelLog {
  LogLines page_faults = {};  // the IOMMU refused an access
  LogLines pcie_corrected = {}, pcie_uncorrected = {};
  LogLines pcie_limited = {};  // "63.008 Gb/s available PCIe bandwidth, limited by ..."
  LogLines peermem = {};       // failures to load nvidia_peermem
};
KernelLog readKernelLog(const std::string& text);

}  // namespace viaduct::diag
