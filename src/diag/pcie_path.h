// The links on the path from a PCI function to the CPU. Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diag/node.h"

namespace viaduct::diag {

// Whether a virtual machine made the bridge up: then its link says nothing about a slot's speed.
bool isEmulatedBridge(const PciFunction& function);

// The bridges above the function, from the CPU down. Emulated bridges and bridges with an unknown
// link are left out.
std::vector<PciFunction> bridgesAbove(const Tree& tree, const PciFunction& function);

// Describes a link: "16 GT/s x8".
std::string textOf(double gigatransfers, unsigned width);

// The addresses of the functions and of the bridges above them, each with its folder without links.
std::map<std::string, std::string> foldersOnWay(const Tree& tree,
                                                std::span<const PciFunction> functions);

// The counter files of advanced error reporting (AER) in the folder of a function.
inline constexpr std::array kAerFiles{"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"};
// The number in the TOTAL line of an AER file.
std::optional<std::uint64_t> aerTotal(const Tree& tree, const std::string& path);

}  // namespace viaduct::diag
