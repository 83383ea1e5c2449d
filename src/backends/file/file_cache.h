// The open descriptors of pinned files, the least recently used of which is closed first. Threads:
// one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "backends/file/engine.h"
#include "backends/file/opened_file.h"

namespace viaduct::file {

class FileCache {
 public:
  struct CachedFile {
    FileId id;
    base::Fd fd = {};
    bool opening = false;       // a thread opens it, and then calls opened()
    bool fixed = false;         // registered with the engine
    std::uint32_t users = 0;    // pieces in flight
    std::uint64_t used_at = 0;  // the count of uses when it was last used
  };
  FileCache(std::uint32_t most, Engine& engine) : engine_(engine), entries_(most) {}

  // Counts a user of the file. An entry without a descriptor is a new one: the caller has the file
  // opened. Nothing: all descriptors are in use, or the file is being opened for another user.
  // `hint` is the index that the file's entry had at its last use.
  std::optional<std::uint32_t> use(const OpenedFile& file, std::uint32_t hint);
  void release(std::uint32_t place) { --entries_[place].users; }
  // Ends the opening of a file. If `fd` is empty, the opening has failed.
  void opened(std::uint32_t place, base::Fd fd);
  const CachedFile& operator[](std::uint32_t place) const { return entries_[place]; }
  // Closes the file, once nothing uses it. Called after the last pin of the file is gone.
  void forget(const FileId& id);

 private:
  std::uint32_t leastUsed() const;
  void close(std::uint32_t place);

  Engine& engine_;
  std::vector<CachedFile> entries_;
  std::map<FileId, std::uint32_t> places_;
  std::uint64_t uses_ = 0;
};

}  // namespace viaduct::file
