// Helpers for the decision whether an agent opens a backend over a fabric library. The agent opens
// it if the user has named it, or if the host has RDMA. Threads: pure.
#pragma once

#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "host/tree.h"

namespace viaduct::move {

// True: the user has named this backend, so it opens with or without RDMA.
bool namedIn(const Settings& settings, std::string_view backend);
// The error kUnsupported for a backend that nobody has named. `detail` says which RDMA is missing.
Error notOpenedUnasked(std::string_view backend, std::string detail);
// The text for devices that host::nearOwnCpus has not chosen. It follows the names of the rails in
// a description, and is empty without such devices.
std::string notNear(std::span<const std::string> devices);

// A reason for gpuIsStaged().
inline constexpr const char* kHostMemoryOnly = "this backend registers host memory only";
// The text that memory of GPUs goes through host memory, and why. It follows a description, and is
// empty on a host without a GPU.
std::string gpuIsStaged(const std::function<std::string()>& why, const host::Tree& tree = {});

}  // namespace viaduct::move
