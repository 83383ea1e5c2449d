#include "host/io_uring.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

namespace viaduct::host {

#if defined(IORING_FEAT_NODROP) && defined(__NR_io_uring_setup)
namespace {

// Constants that the oldest supported kernel headers lack.
constexpr unsigned kRegisterBuffers2 = 15, kUpdateBuffers = 16, kSparse = 1U << 0U;

// The arguments of kRegisterBuffers2 and kUpdateBuffers.
struct RegisterArgs {
  std::uint32_t count = 0, flags = 0;
  std::uint64_t unused = 0, data = 0, tags = 0;
};
struct UpdateArgs {
  std::uint32_t offset = 0, unused = 0;
  std::uint64_t data = 0, tags = 0;
  std::uint32_t count = 0, unused_too = 0;
};

}  // namespace

int openRing(unsigned entries, io_uring_params& params, base::Fd& ring) {
  params = {};
  const auto rc = static_cast<int>(::syscall(__NR_io_uring_setup, entries, &params));
  if (rc < 0) return errno;
  ring.reset(rc);
  constexpr unsigned kNeeded = IORING_FEAT_NODROP | IORING_FEAT_SINGLE_MMAP;
  return (params.features & kNeeded) == kNeeded ? 0 : ENOSYS;
}

int reserveBuffers(int ring, std::uint32_t count) {
  RegisterArgs sparse{.count = count, .flags = kSparse};
  return ::syscall(__NR_io_uring_register, ring, kRegisterBuffers2, &sparse, sizeof sparse) == 0
             ? 0
             : errno;
}

int registerBuffer(int ring, std::uint32_t place, std::span<std::byte> memory) {
  iovec there{memory.data(), memory.size()};
  UpdateArgs update{.offset = place, .data = reinterpret_cast<std::uintptr_t>(&there), .count = 1};
  return ::syscall(__NR_io_uring_register, ring, kUpdateBuffers, &update, sizeof update) == 1
             ? 0
             : errno;
}

RingTrial tryRing() {
  constexpr unsigned kEntries = 128;  // as many as the backend `file` takes by default
  alignas(4096) static std::array<std::byte, 4096> page;
  RingTrial out;
  io_uring_params params{};
  base::Fd ring;
  out.open = openRing(kEntries, params, ring);
  if (out.open == 0) out.reserve = reserveBuffers(ring.get(), 1);
  if (out.open == 0 && out.reserve == 0) out.registration = registerBuffer(ring.get(), 0, page);
  return out;
}

#else

int openRing(unsigned, io_uring_params&, base::Fd&) { return ENOSYS; }
int reserveBuffers(int, std::uint32_t) { return ENOSYS; }
int registerBuffer(int, std::uint32_t, std::span<std::byte>) { return ENOSYS; }
RingTrial tryRing() { return {.open = ENOSYS}; }

#endif

}  // namespace viaduct::host
