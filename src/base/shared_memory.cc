#include "base/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

namespace viaduct::base {
namespace {

constexpr unsigned kMfdHuge2Mb = 21U << 26U;  // MFD_HUGE_2MB, which only kernel headers have
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20U;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62U;

// The number of 2 MiB pages that the system could give now; -1 if it does not say.
long freeHugePages() {
  const Fd file(
      ::open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  if (!file || ::read(file.get(), text.data(), text.size() - 1) <= 0) return -1;
  return std::strtol(text.data(), nullptr, 10);
}

Error noHugePages(const char* call, int os_errno, std::uint64_t bytes) {
  Error error = systemError(Code::kExhausted, call, os_errno);
  const long free = freeHugePages();
  error.cause =
      free < 0 ? std::string("this system has no 2 MiB pages")
               : fmt::format("{} pages of 2 MiB are needed, {} are free", bytes / kHugePage, free);
  error.remedy = "raise vm.nr_hugepages, or allocate without huge pages";
  return error;
}

Error noMemory(const char* call, int os_errno, std::uint64_t bytes) {
  Error error = systemError(Code::kExhausted, call, os_errno);
  if (os_errno == EMFILE) {
    error.cause = "this process has reached its limit of open files";
    error.remedy = "raise the limit (ulimit -n)";
    return error;
  }
  error.cause = fmt::format("{} bytes were requested", bytes);
  return error;
}

}  // namespace

Result<SharedMemory> SharedMemory::allocate(std::uint64_t bytes, const Options& options) {
  if (bytes == 0 || bytes > kMostBytes)
    return Error{Code::kInvalid, "allocate", fmt::format("{} bytes cannot be allocated", bytes)};
  SharedMemory memory;
  memory.bytes_ = bytes;
  VIADUCT_CHECK(memory.create(
      options.huge_pages ? kHugePage : static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)),
      options.huge_pages));
  if (options.sealed_now) VIADUCT_CHECK(memory.seal(0));
  return memory;
}

Status SharedMemory::create(std::uint64_t page, bool huge_pages) {
  const std::uint64_t mapped = (bytes_ + page - 1) / page * page;
  const auto refused = [&](const char* call) {
    return huge_pages && errno != EMFILE ? noHugePages(call, errno, mapped)
                                         : noMemory(call, errno, bytes_);
  };
  const unsigned flags =
      MFD_CLOEXEC | MFD_ALLOW_SEALING | (huge_pages ? MFD_HUGETLB | kMfdHuge2Mb : 0U);
  file_.reset(::memfd_create("viaduct", flags));
  if (!file_) return refused("memfd_create");
  if (::ftruncate(fd(), static_cast<off_t>(mapped)) != 0) return refused("ftruncate");
  void* start = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd(), 0);
  if (start == MAP_FAILED) return refused("mmap");
  start_ = static_cast<std::byte*>(start);
  mapped_ = mapped;
  // Populates huge pages now, so that a missing one is an error and not a later SIGBUS. Kernels
  // before 5.14 do not have this call (EINVAL).
  if (huge_pages && ::madvise(start, mapped, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
    return refused("madvise(MADV_POPULATE_WRITE)");
  // A hint: it has effect if the system allows transparent huge pages for shared memory.
  if (!huge_pages && mapped >= kHugePage) ::madvise(start, mapped, MADV_HUGEPAGE);
  return Ok{};
}

Result<SharedMemory> SharedMemory::map(const Fd& file, std::uint64_t bytes, Access access) {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return Error{Code::kProtocol, "map",
                 "the file is not a memfd that is sealed against shrinking"};
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) return systemError(Code::kDevice, "fstat", errno);
  const auto there = static_cast<std::uint64_t>(facts.st_size);
  if (bytes == 0 || there < bytes)
    return Error{Code::kProtocol, "map",
                 fmt::format("the memfd has {} bytes, {} were announced", there, bytes)};
  // munmap() of huge pages takes only whole pages.
  const auto page = static_cast<std::uint64_t>(facts.st_blksize);
  const std::uint64_t mapped = (bytes + page - 1) / page * page;
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* start = ::mmap(nullptr, mapped, protection, MAP_SHARED, file.get(), 0);
  if (start == MAP_FAILED) return systemError(Code::kExhausted, "mmap", errno);
  SharedMemory memory;
  memory.start_ = static_cast<std::byte*>(start);
  memory.bytes_ = bytes;
  memory.mapped_ = mapped;
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      start_(std::exchange(other.start_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  SharedMemory taken(std::move(other));
  std::swap(file_, taken.file_);
  std::swap(start_, taken.start_);
  std::swap(bytes_, taken.bytes_);
  std::swap(mapped_, taken.mapped_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (start_ != nullptr) ::munmap(start_, mapped_);
}

Status SharedMemory::seal(int more_seals) {
  if (::fcntl(fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | more_seals) != 0)
    return systemError(Code::kDevice, "fcntl(F_ADD_SEALS)", errno);
  return Ok{};
}

Segment SharedMemory::segment() const {
  Segment segment = Segment::host(start_, bytes_);
  segment.fd = fd();
  segment.share_file = true;  // the file never holds anything else
  return segment;
}

}  // namespace viaduct::base
