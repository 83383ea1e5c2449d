// Opens and describes regular files and block devices, and refuses other files. Threads: any.
#pragma once

#include <sys/stat.h>
#include <viaduct/result.h>

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace viaduct::base {

struct StoredFile {
  bool is_device = false;  // a block device, else a regular file
  std::uint64_t bytes = 0;
  dev_t device = 0;  // of the file system. With `inode`, it identifies the file on this host
  ino_t inode = 0;
  std::string generation = {};  // of the inode number: generationOf()
};

// Refuses a folder, and any other file that is neither a regular file nor a block device.
Status checkStored(const char* operation, const struct stat& facts, const std::string& name);

// Describes an open file, or refuses it as checkStored() does. Leaves the offset of `fd` unchanged.
Result<StoredFile> storedFile(const char* operation, int fd, const std::string& name);

// Opens an existing file, and does not wait for the other end of a FIFO. If `writes`, refuses a
// block device that is mounted or otherwise in use: no descriptor, and EBUSY in errno.
Fd openStored(const std::string& path, bool writes);

}  // namespace viaduct::base
