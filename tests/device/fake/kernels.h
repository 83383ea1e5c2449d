// The kernels that the fake GPU can run: the product's own source, compiled for the host. Threads:
// one launch at a time on each.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "device/fake/world.h"

namespace viaduct::fakegpu {

struct Launch {
  unsigned groups = 0;
  unsigned threads = 0;
  std::vector<std::byte> arguments = {};  // one after another, each in eight bytes
};

struct Kernel {
  std::string_view name;
  std::vector<std::size_t> arguments;  // bytes of each
  CUresult (*run)(World& world, const Context& context, const Launch& launch);
};

// Null: the fake GPU has no kernel of this name.
const Kernel* kernelOf(std::string_view name);

}  // namespace viaduct::fakegpu
