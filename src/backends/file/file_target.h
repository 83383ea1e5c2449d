// Pinned memory, or a pinned file. Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/file/opened_file.h"

namespace viaduct::file {

struct FileTarget {
  std::uint64_t address = 0, bytes = 0;
  std::shared_ptr<const OpenedFile> file = {};  // null: host memory
  std::uint64_t first = 0;                      // the offset in the file of `address`
  bool writable = false;

  bool withdrawn = false;  // no piece of it begins any more

  struct TargetPart {
    std::int32_t buffer = -1;  // registered with the engine; else -1
    std::uint32_t pages = 0;   // that pieces have used
    bool tried = false;        // to register it
  };
  std::uint32_t hint = ~0U;            // its last place in the FileCache
  std::uint64_t checked_by = 0;        // the number of the last job that has checked the file
  std::vector<TargetPart> parts = {};  // of host memory that the engine may register

  bool covers(std::uint64_t at, std::uint64_t count) const {
    return at >= address && count <= bytes && at - address <= bytes - count;
  }
};

}  // namespace viaduct::file
