#include "base/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
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

constexpr off_t kBlock = 512;           // the unit of st_blocks
constexpr int kSealFutureWrite = 0x10;  // F_SEAL_FUTURE_WRITE, which old C libraries lack
// f_type of file systems: linux/magic.h
constexpr std::uint32_t kHugetlbfs = 0x958458f6, kSecretMemory = 0x5345434d;

// The number in a file of the kernel; -1 if it cannot be read.
long numberIn(const char* path) {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  if (!file || ::read(file.get(), text.data(), text.size() - 1) <= 0) return -1;
  return std::strtol(text.data(), nullptr, 10);
}

// The number of 2 MiB pages that the system could give now; -1 if it does not say.
long freeHugePages() {
  return numberIn("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
}

std::uint32_t fileSystemOf(int file) {
  struct statfs facts{};
  return ::fstatfs(file, &facts) == 0 ? static_cast<std::uint32_t>(facts.f_type) : 0;
}

// Whether a file has holes. For huge pages the kernel only tells their number, in which pages
// beyond the file's end can hide holes.
bool hasHoles(int file, bool huge) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return true;
  return (huge ? facts.st_blocks * kBlock : ::lseek(file, 0, SEEK_HOLE)) < facts.st_size;
}

// Whether the kernel counts each page of a memfd against the host's limit when it is first touched,
// and sends SIGBUS at the limit.
bool strictOvercommit() { return numberIn("/proc/sys/vm/overcommit_memory") == 2; }

std::uint64_t smallPage() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

// A file that keeps its size, and into which nobody can punch holes.
Fd createSecret() {
#ifdef SYS_memfd_secret
  return Fd(static_cast<int>(::syscall(SYS_memfd_secret, O_CLOEXEC)));
#else
  errno = ENOSYS;
  return {};
#endif
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

Error noSecretMemory(const char* call, int os_errno) {
  Error error = systemError(Code::kUnsupported, call, os_errno);
  error.cause = "vm.overcommit_memory is 2, so a peer could end this process through other memory";
  error.remedy = os_errno == EAGAIN ? "raise the limit of locked memory (ulimit -l)"
                                    : "boot with secretmem.enable=1, or set it to 0 or 1";
  return error;
}

Error noMemory(const char* call, int os_errno, std::uint64_t bytes) {
  Error error = systemError(Code::kExhausted, call, os_errno);
  error.cause = fmt::format("{} bytes were requested", bytes);
  if (os_errno == EFAULT) {  // madvise() failed: an access would have been SIGBUS
    error.cause += ", and vm.overcommit_memory is 2: the host's commit limit leaves less";
    error.remedy = "raise vm.overcommit_ratio, or allocate less";
  }
  return error;
}

Error tooManyFiles(const char* call) {
  Error error = systemError(Code::kExhausted, call, EMFILE);
  error.cause = "this process has reached its limit of open files";
  error.remedy = "raise the limit (ulimit -n)";
  return error;
}

}  // namespace

// The kind of pages of a file, which decides what happens where a hole is touched.
enum class SharedMemory::Pages : std::uint8_t {
  kOrdinary,  // a touched hole gets a new page
  kCounted,   // a touched hole gets a new page, or SIGBUS at the host's commit limit
  kHuge,      // a touched hole gets a new page, or SIGBUS if the pool is empty
  kSecret,    // no holder can punch holes
};

Result<SharedMemory> SharedMemory::allocate(std::uint64_t bytes, const Options& options) {
  if (bytes == 0 || bytes > kMostBytes)
    return Error{Code::kInvalid, "allocate", fmt::format("{} bytes cannot be allocated", bytes)};
  Pages pages = Pages::kOrdinary;
  if (options.huge_pages)
    pages = Pages::kHuge;
  else if (strictOvercommit())
    pages = options.control ? Pages::kSecret : Pages::kCounted;
  SharedMemory memory;
  memory.bytes_ = bytes;
  if (const char* failed = memory.create(pages)) return memory.notCreated(pages, failed);
  if (pages != Pages::kSecret) VIADUCT_CHECK(memory.seal(options.peers_only_read, pages));
  return memory;
}

Error SharedMemory::notCreated(Pages pages, const char* failed) const {
  const int why = errno;
  if (why == EMFILE) return tooManyFiles(failed);
  if (pages == Pages::kSecret) return noSecretMemory(failed, why);
  if (pages == Pages::kHuge) return noHugePages(failed, why, wholePages(kHugePage));
  return noMemory(failed, why, bytes_);
}

std::uint64_t SharedMemory::wholePages(std::uint64_t page) const {
  return (bytes_ + page - 1) / page * page;
}

// Returns null, or the name of the call that failed and has set errno.
const char* SharedMemory::create(Pages pages) {
  const bool huge = pages == Pages::kHuge;
  if (pages == Pages::kSecret) {
    file_ = createSecret();
    if (!file_) return "memfd_secret";
  } else {
    const unsigned flags =
        MFD_CLOEXEC | MFD_ALLOW_SEALING | (huge ? MFD_HUGETLB | kMfdHuge2Mb : 0U);
    file_.reset(::memfd_create("viaduct", flags));
    if (!file_) return "memfd_create";
  }
  const std::uint64_t mapped = wholePages(huge ? kHugePage : smallPage());
  if (::ftruncate(fd(), static_cast<off_t>(mapped)) != 0) return "ftruncate";
  void* start = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd(), 0);
  if (start == MAP_FAILED) return "mmap";
  start_ = static_cast<std::byte*>(start);
  mapped_ = mapped;
  // Populates now, so that a missing page is an error and not a later SIGBUS. Kernels before 5.14
  // do not have this call (EINVAL).
  if ((huge || pages == Pages::kCounted) && ::madvise(start, mapped, MADV_POPULATE_WRITE) != 0 &&
      errno != EINVAL)
    return "madvise(MADV_POPULATE_WRITE)";
  // A hint: it has effect if the system allows transparent huge pages for shared memory.
  if (!huge && mapped >= kHugePage) ::madvise(start, mapped, MADV_HUGEPAGE);
  return nullptr;
}

Result<SharedMemory::Access> SharedMemory::accessOfPeers(int file) {
  const auto type = fileSystemOf(file);
  if (type == kSecretMemory) return Access::kReadWrite;
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return Error{Code::kProtocol, "map",
                 "the file is not a memfd that is sealed against shrinking"};
  const bool may_write = (seals & (F_SEAL_WRITE | kSealFutureWrite)) == 0;
  const bool huge = type == kHugetlbfs;
  if (!huge && !strictOvercommit()) return may_write ? Access::kReadWrite : Access::kRead;
  // A seal against writing forbids holes too. So there will be none if there is none now.
  if (!may_write && !hasHoles(file, huge)) return Access::kRead;
  return Error{Code::kUnsupported, "map",
               huge ? "a peer could take away its huge pages"
                    : "a peer could take away its pages where vm.overcommit_memory is 2"};
}

Result<SharedMemory> SharedMemory::map(const Fd& file, std::uint64_t bytes, Access access) {
  VIADUCT_TRY(const Access allowed, accessOfPeers(file.get()));
  if (access == Access::kReadWrite && allowed == Access::kRead)
    return Error{Code::kUnsupported, "map", "the memfd may only be read"};
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
  memory.access_ = access;
  // Fills holes that the count of huge pages does not show, or fails.
  if (fileSystemOf(file.get()) == kHugetlbfs && ::madvise(start, mapped, MADV_POPULATE_READ) != 0)
    return systemError(Code::kExhausted, "madvise(MADV_POPULATE_READ)", errno);
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      start_(std::exchange(other.start_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::exchange(other.mapped_, 0)),
      access_(other.access_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  SharedMemory taken(std::move(other));
  std::swap(file_, taken.file_);
  std::swap(start_, taken.start_);
  std::swap(bytes_, taken.bytes_);
  std::swap(mapped_, taken.mapped_);
  std::swap(access_, taken.access_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (start_ != nullptr) ::munmap(start_, mapped_);
}

Status SharedMemory::seal(bool peers_only_read, Pages pages) {
  const auto add = [this](int more_seals) {
    return ::fcntl(fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | more_seals) == 0;
  };
  // Linux before 5.1 lacks this seal. Without the seal, peers refuse to map pages that need it.
  if ((peers_only_read || pages != Pages::kOrdinary) && add(kSealFutureWrite)) return Ok{};
  if (!peers_only_read && add(0)) return Ok{};
  return systemError(Code::kDevice, "fcntl(F_ADD_SEALS)", errno);
}

Segment SharedMemory::segment() const {
  Segment segment = Segment::host(start_, bytes_);
  segment.fd = fd();
  segment.share_file = true;  // the file never holds anything else
  return segment;
}

}  // namespace viaduct::base
