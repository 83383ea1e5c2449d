#include "backends/file/opened_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/file_error.h"
#include "base/file_generation.h"
#include "base/stored_file.h"
#include "host/direct_io.h"

namespace viaduct::file {
namespace {

// A file whose blocks exceed the bounce buffers goes through the page cache.
Alignment alignmentOf(int fd, bool is_device) {
  const host::DirectIo rules = host::directIo(fd, is_device);
  if (!rules.works || rules.offset > kMostBytes / 4) return {};
  return {.direct = true, .offset = rules.offset, .memory = rules.memory};
}

Error named(const OpenedFile& file, Code code, std::string detail, std::string remedy) {
  return {.code = code,
          .operation = "pin",
          .detail = std::move(detail),
          .device = "file",
          .file = file.path,
          .remedy = std::move(remedy)};
}

std::string nameOf(const Segment& segment) {
  if (segment.fd < 0) return segment.path;
  std::array<char, 4096> name{};
  const auto link = fmt::format("/proc/self/fd/{}", segment.fd);
  const auto length = ::readlink(link.c_str(), name.data(), name.size() - 1);
  return length > 0 ? std::string(name.data(), static_cast<std::size_t>(length)) : link;
}

// A name under which open() finds the file.
std::string openableName(const OpenedFile& file) {
  const int fd = file.own ? file.own.get() : file.borrowed;
  return fd >= 0 ? fmt::format("/proc/self/fd/{}", fd) : file.path;
}

// O_NONBLOCK avoids a wait for the other end of a FIFO that has taken the file's place. The flag is
// removed after the open, because with it io_uring would not wait for the disk.
base::Fd openWith(const OpenedFile& file, int flags) {
  base::Fd fd(::open(openableName(file).c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666));
  if (fd && ::fcntl(fd.get(), F_SETFL, flags & ~O_CREAT) != 0) fd.reset();
  return fd;
}

// Opens without O_DIRECT. If the file cannot be written, opens it for reading only.
Result<base::Fd> openPlain(OpenedFile& file, Segment& segment) {
  struct stat facts{};
  const bool there = ::stat(openableName(file).c_str(), &facts) == 0;
  if (!there && !(segment.create && errno == ENOENT))
    return base::fileError("pin", errno, file.path);
  if (there) {
    VIADUCT_CHECK(base::checkStored("pin", facts, file.path));
  }
  const int create = segment.create ? O_CREAT : 0;
  if (segment.access == MemoryAccess::kReadWrite) {
    base::Fd fd = openWith(file, O_RDWR | create);
    if (fd) return fd;
    const bool forbidden = errno == EACCES || errno == EROFS || errno == EPERM;
    if (!forbidden || segment.create) return base::fileError("pin", errno, file.path);
    segment.access = MemoryAccess::kReadOnly;
  }
  base::Fd fd = openWith(file, O_RDONLY);
  if (fd) return fd;
  return base::fileError("pin", errno, file.path);
}

// The kernel ends a process by SIGXFSZ if it extends a file beyond RLIMIT_FSIZE.
Status checkLimit(const OpenedFile& file, std::uint64_t end) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || end <= limit.rlim_cur) return Ok{};
  return named(file, Code::kExhausted,
               fmt::format("{} bytes exceed this process's limit of {} for files", end,
                           static_cast<std::uint64_t>(limit.rlim_cur)),
               "raise the limit (ulimit -f)");
}

// Reserves the room now, so that a full disk is found before the first write.
Status extend(const OpenedFile& file, int fd, std::uint64_t size, std::uint64_t end) {
  VIADUCT_CHECK(checkLimit(file, end));
  const auto from = static_cast<off_t>(size);
  const auto bytes = static_cast<off_t>(end - size);
  if (::fallocate(fd, 0, from, bytes) == 0) return Ok{};
  const int error = errno;
  if (error == EOPNOTSUPP && ::ftruncate(fd, static_cast<off_t>(end)) == 0) return Ok{};
  // fallocate may have extended the file by a part.
  [[maybe_unused]] const int restored = ::ftruncate(fd, from);
  Error why = base::fileError("fallocate", error == EOPNOTSUPP ? errno : error, file.path);
  why.detail = fmt::format("extending the file from {} to {} bytes: {}", size, end, why.detail);
  why.remedy = "free room on the file system, or move fewer bytes";
  return why;
}

// Fills in the bytes of the segment, and extends the file if the segment says so.
Status fitBytes(const OpenedFile& file, int fd, std::uint64_t size, Segment& segment) {
  std::uint64_t end = 0;
  if (__builtin_add_overflow(segment.fd_offset, segment.bytes, &end) || end >> 63U != 0)
    return named(file, Code::kInvalid, "the part ends beyond 2^63", "check offset and bytes");
  if (segment.bytes == 0) end = size;
  if (end > size && segment.create && !file.is_device) {
    VIADUCT_CHECK(extend(file, fd, size, end));
    size = end;
  }
  if (end > size || segment.fd_offset >= end)
    return named(file, Code::kInvalid,
                 fmt::format("the file has {} bytes, and the part begins at {} and has {}", size,
                             segment.fd_offset, segment.bytes),
                 "name bytes that the file has, or set FileOptions::create and bytes to extend it");
  segment.bytes = end - segment.fd_offset;
  return Ok{};
}

// Borrows or duplicates the segment's descriptor, and notes its access and O_SYNC in the segment.
Status takeDescriptor(OpenedFile& file, Segment& segment) {
  const int flags = ::fcntl(segment.fd, F_GETFL);
  if (flags < 0) return base::fileError("pin", errno, file.path);
  file.borrowed = segment.borrow ? segment.fd : -1;
  if (!segment.borrow) file.own.reset(::fcntl(segment.fd, F_DUPFD_CLOEXEC, 0));
  if (!segment.borrow && !file.own) return base::fileError("pin", errno, file.path);
  if ((flags & O_ACCMODE) == O_RDONLY) segment.access = MemoryAccess::kReadOnly;
  segment.sync = segment.sync || (flags & O_SYNC) == O_SYNC;
  return Ok{};
}

Error anotherFile(const OpenedFile& file) {
  return {.code = Code::kNotFound,
          .operation = "open",
          .detail = "it is another file than the one that was pinned",
          .device = "file",
          .file = file.path,
          .cause = "the file was replaced: by a rename, or removed and made again",
          .remedy = "pin the new file"};
}

Status chooseAlignment(OpenedFile& file, const Segment& segment, Toggle direct) {
  if (direct == Toggle::kOff) return Ok{};
  const int mode = segment.access == MemoryAccess::kReadOnly ? O_RDONLY : O_RDWR;
  if (const base::Fd fd = openWith(file, mode | O_DIRECT); fd)
    file.alignment = alignmentOf(fd.get(), file.is_device);
  if (file.alignment.direct || direct == Toggle::kAuto) return Ok{};
  return named(file, Code::kUnsupported, "its file system has no O_DIRECT",
               "set VIADUCT_FILE_DIRECT to auto, or use a file on a disk");
}

Result<Segment> examine(const std::shared_ptr<OpenedFile>& file, Segment segment, Toggle direct) {
  VIADUCT_TRY(const base::Fd fd, openPlain(*file, segment));
  VIADUCT_TRY(const auto stored, base::storedFile("pin", fd.get(), file->path));
  file->is_device = stored.is_device;
  file->id = {.device = stored.device,
              .inode = stored.inode,
              .generation = stored.generation,
              .writable = segment.access == MemoryAccess::kReadWrite,
              .sync = segment.sync};
  VIADUCT_CHECK(fitBytes(*file, fd.get(), stored.bytes, segment));
  VIADUCT_CHECK(chooseAlignment(*file, segment, direct));
  segment.kind = file->is_device ? MemoryKind::kBlock : MemoryKind::kFile;
  segment.opened = file;
  return segment;
}

}  // namespace

Result<Segment> openFile(Segment segment, Toggle direct) {
  auto file = std::make_shared<OpenedFile>();
  file->path = nameOf(segment);
  if (segment.temporary)
    return named(*file, Code::kUnsupported, "only an object can be temporary",
                 "pin the descriptor of a file without a name (O_TMPFILE)");
  if (segment.fd >= 0) {
    VIADUCT_CHECK(takeDescriptor(*file, segment));
  } else if (file->path.empty()) {
    return Error{.code = Code::kInvalid,
                 .operation = "pin",
                 .detail = "the segment names no file",
                 .device = "file",
                 .remedy = "use Segment::file() with a path or a descriptor"};
  }
  struct stat before{};
  const bool made = segment.create && segment.fd < 0 && ::stat(file->path.c_str(), &before) != 0;
  auto opened = examine(file, std::move(segment), direct);
  if (!opened && made) ::unlink(file->path.c_str());
  return opened;
}

Result<base::Fd> OpenedFile::reopen() const {
  const int flags = (id.writable ? O_RDWR : O_RDONLY) | (alignment.direct ? O_DIRECT : 0) |
                    (id.sync ? O_SYNC : 0);
  const mode_t type = is_device ? S_IFBLK : S_IFREG;
  struct stat facts{};
  base::Fd fd = openWith(*this, flags);
  if (!fd) {
    const int why = errno;  // the errno for a folder or FIFO tells nothing
    const bool other =
        ::stat(openableName(*this).c_str(), &facts) == 0 && (facts.st_mode & S_IFMT) != type;
    return other ? anotherFile(*this) : base::fileError("open", why, path);
  }
  if (::fstat(fd.get(), &facts) != 0) return base::fileError("fstat", errno, path);
  const FileId found{.device = facts.st_dev,
                     .inode = facts.st_ino,
                     .generation = base::generationOf(fd.get(), is_device)};
  if ((facts.st_mode & S_IFMT) != type || !found.isSameFile(id)) return anotherFile(*this);
  return fd;
}

Status checkFile(const OpenedFile& file, int fd, std::uint64_t end) {
  struct statx facts{};
  // Does not ask a file server, because it may not answer. The kernel knows the size and links from
  // the last read or write.
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE | STATX_NLINK, &facts) != 0)
    return base::fileError("statx", errno, file.path);
  if (file.is_device) return Ok{};
  if (facts.stx_size < end) return shrunkError(file, facts.stx_size, facts.stx_size);
  if (facts.stx_nlink != 0 || file.own || file.borrowed >= 0) return Ok{};
  return Error{.code = Code::kNotFound,
               .operation = "statx",
               .detail = "the file was removed or replaced after it was pinned",
               .device = "file",
               .file = file.path,
               .cause = "a rename over it, or an unlink",
               .remedy = "pin the new file"};
}

Error shrunkError(const OpenedFile& file, std::uint64_t offset, std::uint64_t size) {
  return {.code = Code::kDevice,
          .operation = "read",
          .detail = fmt::format("the file ends at offset {}, inside its pin (it has {} bytes)",
                                offset, size),
          .device = "file",
          .file = file.path,
          .cause = "the file was truncated after it was pinned",
          .remedy = "write the file again, and pin it again"};
}

Error ioError(const OpenedFile& file, bool write, std::uint64_t offset, std::uint64_t bytes,
              int os_errno) {
  const char* const call = write ? "write" : "read";
  Error why = base::fileError(call, os_errno, file.path);
  why.detail = fmt::format("{} bytes at offset {}: {}", bytes, offset, why.detail);
  why.device = "file";
  switch (os_errno) {
    case ENOSPC:
    case EDQUOT:
      why.cause = "the file system or the quota is full";
      why.remedy = "free room, or reserve it with FileOptions::create";
      break;
    case EIO:
      why.cause = "the device failed";
      why.remedy = "see the kernel log (dmesg)";
      break;
    case EFAULT:
      why.code = Code::kDenied;
      why.cause = "pinned host memory was unmapped or protected";
      why.remedy = "keep the memory until its Pin is released";
      break;
    case EINVAL:
      why.code = Code::kDevice;
      why.cause = "the file system refuses this alignment for O_DIRECT";
      why.remedy = "set VIADUCT_FILE_DIRECT to off";
      break;
    case EFBIG:
      why.code = Code::kExhausted;
      why.cause = "the process's limit for files (ulimit -f)";
      break;
    case ECANCELED:
    case EINTR:
      why.code = Code::kCancelled;
      break;
    default:
      break;
  }
  return why;
}

}  // namespace viaduct::file
