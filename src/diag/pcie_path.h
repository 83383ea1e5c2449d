// The links on the way from a PCI function to the CPU. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diag/pci.h"

namespace viaduct::diag {

// Functions whose link is that of a real slot. Virtual machines make bridges up, and those say
// nothing of the slot's speed.
bool isEmulatedBridge(const PciFunction& function);

// The bridges above the function, from the CPU down, without emulated ones and without those whose
// link is unknown.
std::vector<PciFunction> bridgesAbove(const Tree& tree, const PciFunction& function);

double bytesNow(const PciLink& link);
double bytesAtMost(const PciLink& link);  // 0: unknown
// "16 GT/s x8"
std::string textOf(double gigatransfers, unsigned width);

// A counter file of advanced error reporting (AER), of its TOTAL line; 0: none.
struct AerTotals {
  std::uint64_t correctable = 0, nonfatal = 0, fatal = 0;
};
AerTotals aerTotals(const Tree& tree, const std::string& folder);

}  // namespace viaduct::diag
