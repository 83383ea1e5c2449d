// What the user has told other libraries. Our own settings are read in core/settings. Threads: any,
// while none changes the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace viaduct::base {

// "UCX_NET_DEVICES=mlx5_0:1", "UCX_TLS=rc": the variables that begin with `prefix`, in the order of
// their names.
std::vector<std::string> environmentOf(std::string_view prefix);
// All of them in one line; empty: none.
std::string environmentText(std::string_view prefix);

}  // namespace viaduct::base
