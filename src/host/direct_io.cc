#include "host/direct_io.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace viaduct::host {
namespace {

constexpr std::uint32_t kUsualBlock = 4096;

// The kernel's struct statx. glibc 2.36 lacks the fields of STATX_DIOALIGN.
struct Statx {
  std::uint32_t mask, block_size;
  std::uint64_t attributes;
  std::array<std::uint32_t, 4> counts;
  std::array<std::uint64_t, 4> sizes;
  std::array<std::uint64_t, 8> times;
  std::array<std::uint32_t, 4> devices;
  std::uint64_t mount;
  std::uint32_t direct_memory, direct_offset;
  std::array<std::uint64_t, 12> spare;
};
static_assert(sizeof(Statx) == 256);
constexpr unsigned kAskDirect = 0x2000U;  // STATX_DIOALIGN

// Reads the first block, for kernels that do not tell the alignment.
bool readsDirectly(int fd, std::uint32_t block) {
  void* const memory =
      ::mmap(nullptr, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const bool read = ::pread(fd, memory, block, 0) >= 0;
  ::munmap(memory, block);
  return read;
}

}  // namespace

bool isInMemory(int fd) {
  struct statfs facts{};
  return ::fstatfs(fd, &facts) == 0 && (facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC);
}

DirectIo directIo(int fd, bool is_device) {
  // A device's file in /dev lies in memory, but the blocks of the device do not.
  if (!is_device && isInMemory(fd)) return {};
  Statx facts{};
  const long asked = ::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, kAskDirect, &facts);
  if (asked == 0 && (facts.mask & kAskDirect) != 0) {
    if (facts.direct_offset == 0) return {};
    return {
        .works = true, .offset = facts.direct_offset, .memory = std::max(facts.direct_memory, 1U)};
  }
  std::uint32_t block = kUsualBlock;
  int sector = 0;
  if (is_device && ::ioctl(fd, BLKSSZGET, &sector) == 0 && sector > 0)
    block = static_cast<std::uint32_t>(sector);
  if (!readsDirectly(fd, block)) return {};
  return {.works = true, .offset = block, .memory = block};
}

}  // namespace viaduct::host
