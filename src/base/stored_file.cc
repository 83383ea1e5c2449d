#include "base/stored_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "base/file_error.h"
#include "base/file_generation.h"

namespace viaduct::base {

Status checkStored(const char* operation, const struct stat& facts, const std::string& name) {
  if (S_ISREG(facts.st_mode) || S_ISBLK(facts.st_mode)) return Ok{};
  return Error{
      .code = Code::kInvalid,
      .operation = operation,
      .detail = S_ISDIR(facts.st_mode) ? "it is a folder" : "it is no regular file or block device",
      .file = name,
      .remedy = "name a regular file or a block device"};
}

Result<StoredFile> storedFile(const char* operation, int fd, const std::string& name) {
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return fileError(operation, errno, name);
  VIADUCT_CHECK(checkStored(operation, facts, name));
  StoredFile out{.is_device = S_ISBLK(facts.st_mode),
                 .bytes = static_cast<std::uint64_t>(facts.st_size),
                 .device = facts.st_dev,
                 .inode = facts.st_ino};
  out.generation = generationOf(fd, out.is_device);
  // The system gives 0 as the st_size of each device.
  if (out.is_device && ::ioctl(fd, BLKGETSIZE64, &out.bytes) != 0)
    return fileError(operation, errno, name);
  return out;
}

Fd openStored(const std::string& path, bool writes) {
  struct stat facts{};
  const bool device = ::stat(path.c_str(), &facts) == 0 && S_ISBLK(facts.st_mode);
  const int access = writes ? O_RDWR | (device ? O_EXCL : 0) : O_RDONLY;
  return Fd(::open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace viaduct::base
