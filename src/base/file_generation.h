// Tells a file from a later one that reuses its inode number. Threads: any.
#pragma once

#include <string>

namespace viaduct::base {

// Bytes that differ between two files that had the same device and inode number at different times,
// and stay the same as long as the file exists. For a block device, they also differ between two
// disks behind one name. Empty: the file system and the kernel provide no such bytes.
std::string generationOf(int fd, bool is_device);

}  // namespace viaduct::base
