// Environment variables of other libraries. core/settings reads our own. Threads: any, while none
// changes the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace viaduct::base {

// The variables that begin with `prefix`, in the order of their names: "UCX_NET_DEVICES=mlx5_0:1",
// "UCX_TLS=rc".
std::vector<std::string> environmentOf(std::string_view prefix);
// All of these variables in one line; empty: there are none.
std::string environmentText(std::string_view prefix);

}  // namespace viaduct::base
