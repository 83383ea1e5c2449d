#include "base/file_generation.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#ifndef BLKGETDISKSEQ  // since Linux 5.15
#define BLKGETDISKSEQ _IOR(0x12, 128, __u64)
#endif

namespace viaduct::base {
namespace {

constexpr int kHandleOnlyToCompare = 0x200;  // AT_HANDLE_FID, since Linux 6.5
constexpr long kFuse = 0x65735546;           // FUSE_SUPER_MAGIC

template <class T>
void append(std::string& out, const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Appends the file handle, by which file servers name a file. The handle has the inode number and a
// generation, which is new each time that the number is used.
void appendHandle(int fd, int flags, std::string& out) {
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + MAX_HANDLE_SZ> room{};
  auto* const handle = new (room.data()) file_handle{};
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(fd, "", handle, &mount, flags | AT_EMPTY_PATH) != 0) return;
  append(out, handle->handle_type);
  out.append(reinterpret_cast<const char*>(handle->f_handle), handle->handle_bytes);
}

void appendBirth(int fd, std::string& out) {
  struct statx facts{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &facts) != 0) return;
  if ((facts.stx_mask & STATX_BTIME) == 0) return;
  append(out, facts.stx_btime.tv_sec);
  append(out, facts.stx_btime.tv_nsec);
}

}  // namespace

std::string generationOf(int fd, bool is_device) {
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0) return {};
  const bool overlay = system.f_type == OVERLAYFS_SUPER_MAGIC;
  std::string out;
  // A FUSE file system may give a file another handle when the kernel has forgotten it.
  if (system.f_type != kFuse) appendHandle(fd, overlay ? kHandleOnlyToCompare : 0, out);
  // At the first write, an overlay makes a copy of the file. That copy is still the same file and
  // has the same handle, but another time of birth.
  if (!overlay || out.empty()) appendBirth(fd, out);
  std::uint64_t disk = 0;
  if (is_device && ::ioctl(fd, BLKGETDISKSEQ, &disk) == 0) append(out, disk);
  return out;
}

}  // namespace viaduct::base
