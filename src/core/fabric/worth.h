// Whether a backend over a fabric library is worth opening: it was asked for by name, or there is
// RDMA. Threads: pure.
#pragma once

#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <string>
#include <string_view>

namespace viaduct::core::fabric {

// The user wants this one, RDMA or not.
bool namedIn(const Settings& settings, std::string_view backend);
// kUnsupported: nobody has named it, and `detail` tells what RDMA there is not.
Error notWorthIt(std::string_view backend, std::string detail);

}  // namespace viaduct::core::fabric
