#include "measure/workload/stored_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file_error.h"
#include "base/sizes.h"
#include "base/stored_file.h"

namespace viaduct::measure {
namespace {

// Descriptors that a process needs in addition to one for each file. The backend opens up to 256 of
// the files a second time.
constexpr std::uint64_t kOtherDescriptors = 320;

bool writes(const Spec& spec) {
  return !spec.rows.empty() && spec.rows.front().op == OpKind::kWrite;
}

std::string folderOf(const std::string& name) {
  const std::string folder = std::filesystem::path(name).parent_path();
  return folder.empty() ? "." : folder;
}

Error badFolder(const std::string& folder) {
  Error error = base::fileError("--filepath", errno, folder);
  error.remedy = "name an existing folder that you may write";
  return error;
}

// Makes a file without a name. The kernel removes the file with its last descriptor, even if the
// process is killed.
Result<base::Fd> makeNameless(const std::string& folder) {
  base::Fd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600));
  if (fd) return fd;
  const bool unknown = errno == EOPNOTSUPP || errno == EISDIR;
  if (!unknown) return badFolder(folder);
  std::string name = folder + "/.viaduct-bench-XXXXXX";
  fd.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return badFolder(folder);
  if (::unlink(name.c_str()) != 0) return base::fileError("unlink", errno, name);
  return fd;
}

Error badFile(const std::string& name, Code code, std::string detail, std::string remedy) {
  return {.code = code,
          .operation = "--filenames",
          .detail = std::move(detail),
          .file = name,
          .remedy = std::move(remedy)};
}

// Opens a file that the user named. Returns nothing if there is no such file.
Result<base::Fd> openNamed(const std::string& name, const Spec& spec, std::uint64_t bytes) {
  base::Fd fd = base::openStored(name, writes(spec));
  if (!fd && errno == ENOENT) return fd;
  if (!fd) {
    Error error = base::fileError("--filenames", errno, name);
    error.remedy = error.os_errno == EBUSY ? "unmount the device, or use --op read"
                   : writes(spec)          ? "name a file that you may write, or use --op read"
                                           : "name a file that you may read";
    return error;
  }
  const auto file = base::storedFile("--filenames", fd.get(), name);
  if (!file)
    return badFile(name, file.error().code, file.error().detail,
                   "name a file or a block device, or give a folder to --filepath");
  if (writes(spec) && !spec.storage.overwrite)
    return badFile(name, Code::kDenied, "the file exists, and a write would destroy its contents",
                   "use --op read, another name, or --overwrite to lose its contents");
  if (file->bytes < bytes)
    return badFile(name, Code::kInvalid,
                   fmt::format("the file has {}, and the rows need {}", base::showSize(file->bytes),
                               base::showSize(bytes)),
                   "use smaller blocks, batches or --working_set, or a larger file");
  return fd;
}

Status descriptorsSuffice(const Spec& spec) {
  rlimit limit{};
  const std::uint64_t devices = spec.layout.mode == Mode::kMg ? spec.layout.initiators : 1;
  const std::uint64_t needed = devices * spec.storage.files + kOtherDescriptors;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || needed <= limit.rlim_cur) return Ok{};
  return Error{.code = Code::kExhausted,
               .operation = "--num_files",
               .detail = fmt::format("{} files need {} descriptors, and the limit is {}",
                                     devices * spec.storage.files, needed,
                                     static_cast<std::uint64_t>(limit.rlim_cur)),
               .remedy = "raise the limit (ulimit -n), or use fewer files"};
}

Status roomSuffices(const std::string& folder, std::uint64_t bytes) {
  struct statvfs facts{};
  if (::statvfs(folder.c_str(), &facts) != 0) return base::fileError("statvfs", errno, folder);
  const std::uint64_t free = facts.f_bavail * facts.f_frsize;
  if (bytes <= free) return Ok{};
  return Error{.code = Code::kExhausted,
               .operation = "--filepath",
               .detail = fmt::format("the files need {}, and the file system has {} free",
                                     base::showSize(bytes), base::roundedSize(free)),
               .file = folder,
               .remedy = "use smaller blocks, batches or --working_set, or another folder"};
}

// A file of a device, which was opened or made. `named` is true for a file that the user named.
struct FoundFile {
  base::Fd fd = {};
  std::string name = {};
  bool named = false;
};
Result<FoundFile> find(const Spec& spec, std::uint32_t i, std::uint64_t bytes) {
  const auto& names = spec.storage.names;
  FoundFile out{.name = names.empty() ? spec.storage.place : names[i]};
  if (!names.empty()) {
    VIADUCT_TRY(out.fd, openNamed(names[i], spec, bytes));
    out.named = static_cast<bool>(out.fd);
    if (out.named) return out;
  }
  VIADUCT_TRY(out.fd, makeNameless(names.empty() ? spec.storage.place : folderOf(names[i])));
  return out;
}

using Transport = ssize_t (*)(int fd, std::byte* at, std::size_t bytes, off_t offset);

// Moves all bytes between memory and a file. Repeats `move`, because one call may move only a part.
Status moveAll(Transport move, const char* operation, int fd, std::span<std::byte> memory,
               std::uint64_t offset, const std::string& name) {
  while (!memory.empty()) {
    const ssize_t moved = move(fd, memory.data(), memory.size(), static_cast<off_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return base::fileError(operation, errno, name);
    if (moved == 0)
      return badFile(name, Code::kDevice, fmt::format("it ends at offset {}", offset),
                     "leave the file as it is while a run uses it");
    memory = memory.subspan(static_cast<std::size_t>(moved));
    offset += static_cast<std::uint64_t>(moved);
  }
  return Ok{};
}

}  // namespace

Status filesSuffice(const Spec& spec, bool local) {
  if (!spec.layout.stored() || spec.storage.kind != MemoryKind::kFile) return Ok{};
  VIADUCT_CHECK(descriptorsSuffice(spec));
  VIADUCT_TRY(const DeviceBytes bytes, deviceBytes(spec));
  const std::uint64_t each = fileBytes(spec, bytes);
  std::string folder;
  std::uint64_t made = 0;
  for (std::uint32_t i = 0; i < spec.storage.files; ++i) {
    VIADUCT_TRY(const FoundFile file, find(spec, i, each));
    if (file.named) continue;
    ++made;
    folder = spec.storage.names.empty() ? spec.storage.place : folderOf(file.name);
  }
  const bool all = local || spec.layout.mode == Mode::kMg;
  return made == 0 ? Status(Ok{})
                   : roomSuffices(folder, made * each * (all ? spec.layout.initiators : 1));
}

Result<std::unique_ptr<Storage>> StoredFiles::make(Agent& agent, const Peer& self, const Spec& spec,
                                                   const DeviceBytes& bytes, std::uint32_t number,
                                                   Buffer copy) {
  const std::uint64_t each = fileBytes(spec, bytes);
  std::unique_ptr<StoredFiles> out(new StoredFiles(spec, each / spec.threads, std::move(copy)));
  for (std::uint32_t i = 0; i < spec.storage.files; ++i) {
    VIADUCT_TRY(FoundFile file, find(spec, i, each));
    const std::string label = fmt::format("bench-file-{}-{}", number, i);
    const FileOptions options{.bytes = each,
                              .create = !file.named,
                              .read_only = file.named && !writes(spec),
                              .borrow = true};
    VIADUCT_TRY(Pin pin, agent.pin(Segment::file(file.fd.get(), options), label));
    VIADUCT_CHECK(self.waitPin(label, kAnnounced));
    out->given_ = out->given_ || (file.named && !writes(spec));
    out->files_.push_back({std::move(file.fd), std::move(pin), std::move(file.name)});
  }
  return std::unique_ptr<Storage>(std::move(out));
}

Status StoredFiles::begin(const Workload& row) {
  row_ = row;
  return Ok{};
}

StoredFiles::Place StoredFiles::placeOf(std::uint32_t part, std::uint64_t block) const {
  return {files_[block % files_.size()],
          part * part_bytes_ + block / files_.size() * row_.block_bytes};
}

Result<Blocks> StoredFiles::blocks(const StoredSet& set) {
  std::vector<Extent> extents;
  extents.reserve(row_.batch);
  for (std::uint32_t k = 0; k < row_.batch; ++k) {
    const Place place = placeOf(set.part, set.first + k);
    extents.push_back({place.file.pin.info().address + place.offset, row_.block_bytes});
  }
  return Blocks::list(extents);
}

template <class Visit>
Status StoredFiles::each(const StoredSet& set, Visit visit) {
  for (std::uint32_t k = 0; k < row_.batch; ++k)
    VIADUCT_CHECK(visit(placeOf(set.part, set.first + k),
                        bytes().subspan(set.at + k * row_.block_bytes, row_.block_bytes)));
  return Ok{};
}

Status StoredFiles::store(const StoredSet& set) {
  return each(set, [](const Place& place, std::span<std::byte> memory) {
    constexpr Transport kWrite = [](int fd, std::byte* at, std::size_t count, off_t offset) {
      return ::pwrite(fd, at, count, offset);
    };
    return moveAll(kWrite, "pwrite", place.file.fd.get(), memory, place.offset, place.file.name);
  });
}

Status StoredFiles::load(const StoredSet& set) {
  return each(set, [](const Place& place, std::span<std::byte> memory) {
    constexpr Transport kRead = [](int fd, std::byte* at, std::size_t count, off_t offset) {
      return ::pread(fd, at, count, offset);
    };
    return moveAll(kRead, "pread", place.file.fd.get(), memory, place.offset, place.file.name);
  });
}

Status StoredFiles::settle() {
  for (const File& file : files_) {
    if (!given_ && ::fdatasync(file.fd.get()) != 0)
      return base::fileError("fdatasync", errno, file.name);
    if (!spec_.storage.cached) ::posix_fadvise(file.fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  return Ok{};
}

}  // namespace viaduct::measure
