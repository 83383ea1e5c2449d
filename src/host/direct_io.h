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

// A file in memory has no device that O_DIRECT could reach, although it may accept the flag.
bool isInMemory(int fd);

}  // namespace viaduct::host
