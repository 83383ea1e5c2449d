// What the user has told other libraries. Our own settings are read in core/settings. Threads: any,
// while none changes the environment.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::base {

// "UCX_TLS=rc UCX_NET_DEVICES=mlx5_0:1": the variables that begin with `prefix`; empty: none.
std::string environmentText(std::string_view prefix);

}  // namespace viaduct::base
