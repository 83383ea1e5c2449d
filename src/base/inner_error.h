// The text of an error for the detail of another one. Threads: pure function.
#pragma once

#include <viaduct/result.h>

#include <string>

namespace viaduct::base {

// Leaves out the code, the peer and the file, which belong to the outer error.
std::string innerText(const Error& error);

}  // namespace viaduct::base
