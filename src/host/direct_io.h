// Reads and writes of a file without the page cache (O_DIRECT). Threads: any.
#pragma once

#include <cstdint>

namespace viaduct::host {

// The rules for an open descriptor with O_DIRECT.
struct DirectIo {
  bool works = false;
  std::uint32_t offset = 1, memory = 1;  // multiples that the kernel demands
};
DirectIo directIo(int fd, bool is_device);

// Whether a file is in memory. O_DIRECT then has no device to reach, although the file may accept
// the flag.
bool isInMemory(int fd);

}  // namespace viaduct::host
