// One launch of a kernel's source on this host. Threads: each has one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "device/fake/kernels.h"

namespace viaduct::fakegpu {

// Lets the kernel that `body` runs find the bytes of device addresses. Returns the error of the
// first access that a real GPU refuses, which ends the launch.
CUresult runOnHost(World& world, const Context& context, const std::function<void()>& body);

// Finds the bytes of a kernel's table, which the kernel reads directly. Call it in a launch's body.
const std::byte* tableAt(std::uint64_t address, std::uint64_t bytes);

}  // namespace viaduct::fakegpu
