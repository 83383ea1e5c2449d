// Read and write whole texts at a descriptor, across interrupts and short reads and writes.
// Threads: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace viaduct::base {

// Appends until the end, or until `into` has `most` + 1 bytes, which shows that there are more.
// Returns 0, or an errno.
int readAll(int fd, std::string& into, std::size_t most);
// Like readAll(), and ends as soon as `into` has a line break.
int readLine(int fd, std::string& into, std::size_t most);
// Returns 0, or an errno.
int writeAll(int fd, std::string_view bytes);

}  // namespace viaduct::base
