// The error of a system call on a named file. Threads: pure function.
#pragma once

#include <viaduct/result.h>

#include <string>

namespace viaduct::base {

// Like systemError(), with the code that `os_errno` means for a file: kNotFound, kDenied, kInvalid
// for a folder or an unusable name, kExhausted if a disk, a table or the memory is full. Otherwise
// kDevice.
Error fileError(std::string operation, int os_errno, std::string file);

}  // namespace viaduct::base
