// Whether an agent opens a backend over a fabric library: when it was asked for by name, or when
// there is RDMA; and the description of the devices that it uses. Threads: pure.
#pragma once

#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <span>
#include <string>
#include <string_view>

namespace viaduct::move {

// The user wants this one, RDMA or not.
bool namedIn(const Settings& settings, std::string_view backend);
// kUnsupported: nobody has named it, and `detail` tells what RDMA there is not.
Error notOpenedUnasked(std::string_view backend, std::string detail);
// For a description, behind the rails: devices that nobody has named, and that
// host::nearOwnCpus has not chosen. Empty: there are none.
std::string notNear(std::span<const std::string> devices);

}  // namespace viaduct::move
