#include "diag/kernel_log.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/text.h"
#include "diag/node.h"

namespace viaduct::diag {
namespace {

bool holds(const std::string& line, std::string_view part) {
  return line.find(part) != std::string::npos;
}

bool isPageFault(const std::string& line) {
  return holds(line, "IO_PAGE_FAULT") || (holds(line, "DMAR") && holds(line, "fault addr")) ||
         (holds(line, "arm-smmu") && holds(line, "event 0x10 received"));
}

bool isPeermemFailure(const std::string& line) {
  return holds(line, "peermem") &&
         (holds(line, "disagrees about version of symbol") || holds(line, "Unknown symbol"));
}

// Adds the PCI functions of a line: addresses with their domain, or without it from DMAR:
// "[c1:00.0]".
void addFunctions(const std::string& line, std::set<std::string>& out) {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF:.";
  for (std::size_t at = 0; (at = line.find_first_of(kDigits, at)) != std::string::npos;) {
    std::size_t end = std::min(line.find_first_not_of(kDigits, at), line.size());
    std::string word = line.substr(at, end - at);
    at = end;
    while (word.ends_with(':') || word.ends_with('.')) word.pop_back();
    if (isPciAddress(word))
      out.insert(word);
    else if (isPciAddress("0000:" + word))
      out.insert("0000:" + word);
  }
}

void count(LogLines& lines, const std::string& line) {
  if (lines.count++ == 0) lines.first = line;
  addFunctions(line, lines.functions);
}

// Counts a line "pcieport 0000:3a:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer".
void countPcieError(KernelLog& log, const std::string& line) {
  if (!holds(line, "PCIe Bus Error")) return;
  const bool corrected = holds(line, "severity=Corrected") || holds(line, "severity=Correctable");
  count(corrected ? log.pcie_corrected : log.pcie_uncorrected, line);
}

}  // namespace

KernelLog readKernelLog(const std::string& text) {
  KernelLog out;
  for (const std::string& line : base::partsOf(text, '\n')) {
    if (isPageFault(line)) count(out.page_faults, line);
    if (isPeermemFailure(line)) count(out.peermem, line);
    if (holds(line, "available PCIe bandwidth, limited by")) count(out.pcie_limited, line);
    countPcieError(out, line);
  }
  return out;
}

}  // namespace viaduct::diag
