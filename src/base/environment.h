// Environment variables. core/settings reads those of our settings. Threads: any, while none
// changes the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace viaduct::base {

// Whether the process trusts its environment. A setuid or setgid program, and one with file
// capabilities, has other rights than the user who has set the variables.
bool environmentIsTrusted();
// The value of a variable; null: it is not set, or the environment is not trusted.
const char* variable(const char* name);
// The value of a variable; empty: it is not set, or the environment is not trusted.
std::string variableText(const char* name);

// Both functions below are for reports of variables that other libraries read by themselves. They
// work in an untrusted environment too.
// The variables that begin with `prefix`, in the order of their names: "UCX_NET_DEVICES=mlx5_0:1",
// "UCX_TLS=rc".
std::vector<std::string> environmentOf(std::string_view prefix);
// All variables that begin with `prefix`, in one line; empty: there are none.
std::string environmentText(std::string_view prefix);

}  // namespace viaduct::base
