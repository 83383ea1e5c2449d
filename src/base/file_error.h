// The error of a system call on a named file. Threads: pure function.
#pragma once

#include <viaduct/result.h>

#include <string>

namespace viaduct::base {

// Like systemError(), with the code that `os_errno` means for a file: kNotFound, kDenied, kInvalid
// if the name is a folder's, kExhausted if a disk or a table is full.
Error fileError(std::string operation, int os_errno, std::string file);

}  // namespace viaduct::base
