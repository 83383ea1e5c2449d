#include "measure/run/pipeline_storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/file_error.h"
#include "base/sizes.h"
#include "base/stored_file.h"
#include "measure/run/flow.h"

namespace viaduct::measure::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kSource = "open the source";
constexpr auto kDestination = "open the destination";

Error wrongFile(const char* operation, Code code, const std::string& path, std::string detail,
                std::string remedy) {
  return {.code = code,
          .operation = operation,
          .detail = std::move(detail),
          .file = path,
          .remedy = std::move(remedy)};
}

Error systemFault(const char* operation, const std::string& path, std::string remedy = {}) {
  Error error = base::fileError(operation, errno, path);
  error.remedy = std::move(remedy);
  return error;
}

// Makes a file of this size. Removes the name before the file has contents, so that a killed
// process leaves no file behind. Returns no descriptor if a file of that name exists.
Result<base::Fd> makeUnnamed(const char* operation, const std::string& path, std::uint64_t bytes) {
  base::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd && errno == EEXIST) return fd;
  if (!fd)
    return systemFault(operation, path, "name a file in an existing folder that you may write");
  if (::unlink(path.c_str()) != 0) return systemFault(operation, path);
  const auto size = static_cast<off_t>(bytes);
  if (::fallocate(fd.get(), 0, 0, size) == 0) return fd;
  if (errno == EOPNOTSUPP && ::ftruncate(fd.get(), size) == 0) return fd;
  return systemFault(operation, path,
                     fmt::format("free {}, or choose a smaller size", base::showSize(bytes)));
}

Status writeContents(const base::Fd& fd, const std::string& path, const StorageOptions& options) {
  const std::uint64_t bytes = options.create_source;
  const Expected contents =
      Expected::pattern(options.chunks, bytes, options.seed, PinnedStorage::kSourceEpoch);
  std::vector<std::byte> memory(options.chunks.chunk_bytes);
  for (std::uint64_t i = 0; i < options.chunks.countOf(bytes); ++i) {
    const Chunk chunk = options.chunks.chunk(bytes, i);
    const auto part = std::span(memory).first(chunk.bytes);
    VIADUCT_CHECK(contents.fill(part, i));
    const ssize_t done = ::pwrite(fd.get(), part.data(), part.size(), static_cast<off_t>(chunk.at));
    if (done < 0) return systemFault("write", path);
    if (static_cast<std::size_t>(done) != part.size())
      return wrongFile("write", Code::kExhausted, path, "the disk took a part of the bytes",
                       "free room, or choose a smaller size");
  }
  // Flushes the file. Otherwise the first reads, which bypass the page cache, would wait for the
  // write-back.
  if (::fdatasync(fd.get()) != 0) return systemFault("fdatasync", path);
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return Ok{};
}

Result<base::Fd> makeSource(const std::string& path, const StorageOptions& options) {
  VIADUCT_TRY(base::Fd fd, makeUnnamed(kSource, path, options.create_source));
  if (!fd)
    return wrongFile(kSource, Code::kInvalid, path, "the file exists",
                     "omit --create-source to read it");
  VIADUCT_CHECK(writeContents(fd, path, options));
  return fd;
}

Result<base::Fd> openSource(const std::string& path) {
  base::Fd fd = base::openStored(path, false);
  if (fd) return fd;
  return systemFault(kSource, path,
                     errno == ENOENT
                         ? "name an existing file, or make one with --create-source SIZE"
                         : "name a file that you may read");
}

// Returns the number of bytes to move from a source of `size` bytes.
Result<std::uint64_t> bytesOf(const std::string& path, std::uint64_t size, std::uint64_t wanted) {
  if (size == 0)
    return wrongFile(kSource, Code::kInvalid, path, "it is empty", "name a source with contents");
  if (wanted <= size) return wanted != 0 ? wanted : std::min(size, kUsualBytes);
  return wrongFile(kSource, Code::kInvalid, path,
                   fmt::format("it has {}, fewer than the {} of --total-buffer-size",
                               base::showSize(size), base::showSize(wanted)),
                   "choose a smaller size");
}

struct OpenedDestination {
  base::Fd fd;
  bool made = false;
};
Result<OpenedDestination> openDestination(const std::string& path, std::uint64_t bytes,
                                          bool overwrite) {
  VIADUCT_TRY(base::Fd made, makeUnnamed(kDestination, path, bytes));
  if (made) return OpenedDestination{std::move(made), true};
  struct stat facts{};
  if (::stat(path.c_str(), &facts) == 0) {
    VIADUCT_CHECK(base::checkStored(kDestination, facts, path));
  }
  if (!overwrite)
    return wrongFile(kDestination, Code::kInvalid, path, "the file exists",
                     "name a new file, or allow to overwrite it with --overwrite");
  base::Fd fd = base::openStored(path, true);
  if (!fd)
    return systemFault(
        kDestination, path,
        errno == EBUSY ? "unmount the device, or name another" : "name a file that you may write");
  VIADUCT_TRY(const auto file, base::storedFile(kDestination, fd.get(), path));
  if (file.is_device && file.bytes < bytes)
    return wrongFile(kDestination, Code::kInvalid, path,
                     fmt::format("the device has {}, fewer than the {} to move",
                                 base::showSize(file.bytes), base::showSize(bytes)),
                     "choose a smaller --total-buffer-size");
  return OpenedDestination{std::move(fd), false};
}

Result<Pin> pinObject(Agent& agent, const Storage& storage, std::uint64_t wanted) {
  VIADUCT_TRY(Pin all, agent.pin(Segment::object(storage.path)));
  VIADUCT_TRY(const std::uint64_t bytes, bytesOf(storage.text, all.size(), wanted));
  VIADUCT_CHECK(all.release());
  return agent.pin(Segment::object(storage.path, {.bytes = bytes}), kSourceLabel);
}

}  // namespace

Result<PinnedStorage> PinnedStorage::source(Agent& agent, const Storage& storage,
                                            const StorageOptions& options) {
  const bool made = options.create_source != 0;
  if (storage.kind == MemoryKind::kObject) {
    if (made)
      return wrongFile(kSource, Code::kUnsupported, storage.text, "it is an object",
                       "--create-source makes files only");
    VIADUCT_TRY(Pin pin, pinObject(agent, storage, options.bytes));
    return PinnedStorage(storage, {}, false, std::move(pin));
  }
  VIADUCT_TRY(base::Fd fd, made ? makeSource(storage.path, options) : openSource(storage.path));
  VIADUCT_TRY(const auto file, base::storedFile(kSource, fd.get(), storage.path));
  const std::uint64_t wanted = options.bytes == 0 && made ? file.bytes : options.bytes;
  VIADUCT_TRY(const std::uint64_t bytes, bytesOf(storage.path, file.bytes, wanted));
  VIADUCT_TRY(Pin pin, agent.pin(Segment::file(fd.get(), {.bytes = bytes, .read_only = true}),
                                 kSourceLabel));
  return PinnedStorage(storage, std::move(fd), made, std::move(pin));
}

Result<PinnedStorage> PinnedStorage::destination(Agent& agent, const Storage& storage,
                                                 const StorageOptions& options) {
  const FileOptions whole{.bytes = options.bytes, .create = true};
  if (storage.kind == MemoryKind::kObject) {
    if (!options.overwrite)
      return wrongFile(kDestination, Code::kInvalid, storage.text,
                       "the object is written, and stays in the store",
                       "allow it with --overwrite");
    VIADUCT_TRY(Pin pin, agent.pin(Segment::object(storage.path, whole), kDestinationLabel));
    return PinnedStorage(storage, {}, false, std::move(pin));
  }
  VIADUCT_TRY(OpenedDestination opened,
              openDestination(storage.path, options.bytes, options.overwrite));
  VIADUCT_TRY(Pin pin, agent.pin(Segment::file(opened.fd.get(), whole), kDestinationLabel));
  return PinnedStorage(storage, std::move(opened.fd), opened.made, std::move(pin));
}

std::string PinnedStorage::identity() const {
  struct stat facts{};
  if (!fd_ || ::fstat(fd_.get(), &facts) != 0) return {};
  return fmt::format("{}:{}", facts.st_dev, facts.st_ino);
}

Result<Wrong> PinnedStorage::read(Agent& agent, const Chunking& chunks, const Visit& visit) const {
  std::vector<std::byte> memory;
  if (storage_.kind == MemoryKind::kObject) {
    VIADUCT_TRY(memory, readObject(agent, storage_.path, bytes()));
    for (std::uint64_t i = 0; i < chunks.countOf(bytes()); ++i) {
      const Chunk chunk = chunks.chunk(bytes(), i);
      VIADUCT_TRY(Wrong wrong, visit(std::span(memory).subspan(chunk.at, chunk.bytes), i));
      if (wrong) return wrong;
    }
    return Wrong();
  }
  // Reads the file directly and not through the agent, so that an agent's fault cannot hide in the
  // check.
  memory.resize(chunks.chunk_bytes);
  for (std::uint64_t i = 0; i < chunks.countOf(bytes()); ++i) {
    const Chunk chunk = chunks.chunk(bytes(), i);
    const auto part = std::span(memory).first(chunk.bytes);
    const ssize_t got = ::pread(fd_.get(), part.data(), part.size(), static_cast<off_t>(chunk.at));
    if (got < 0) return systemFault("read", storage_.path);
    if (static_cast<std::size_t>(got) != part.size())
      return Wrong(
          fmt::format("the file ends at byte {}", chunk.at + static_cast<std::uint64_t>(got)));
    VIADUCT_TRY(Wrong wrong, visit(part, i));
    if (wrong) return wrong;
  }
  return Wrong();
}

}  // namespace viaduct::measure::pipeline
