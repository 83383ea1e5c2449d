#include "base/replaced_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"
#include "base/random.h"
#include "base/read_fd.h"

namespace viaduct::base {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kForAll = 0666, kForUs = 0600;

// Follows links, even if the last one leads to a file that does not exist yet. Nothing: a link in
// /proc, such as /dev/stdout, leads to an open descriptor and names no file.
std::optional<std::string> behindLinks(const std::string& name) {
  constexpr int kMostLinks = 40;
  std::error_code none;
  fs::path at = name;
  for (int i = 0; i < kMostLinks && fs::is_symlink(at, none); ++i) {
    struct statfs system{};
    if (::statfs(at.parent_path().c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC)
      return std::nullopt;
    at = at.parent_path() / fs::read_symlink(at, none);
  }
  return at.string();
}

// A new file beside `target`, under a name that nobody can guess. So nobody else can put a link
// there. No descriptor: errno tells why.
Fd makeBeside(const std::string& target, mode_t mode, std::string& name) {
  constexpr int kMostTries = 100;
  Fd out;
  for (int i = 0; i < kMostTries && !out; ++i) {
    const auto number = secretNumber();
    if (!number) break;
    name = fmt::format("{}.{:016x}.part", target, *number);
    out.reset(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!out && errno != EEXIST) break;
  }
  return out;
}

// Gives a new file the owner and the rights of the one that it replaces, as far as this process
// may.
void takeRights(int fd, const std::string& from) {
  struct stat old{};
  if (::stat(from.c_str(), &old) != 0) return;
  [[maybe_unused]] const int owned = ::fchown(fd, old.st_uid, old.st_gid);
  ::fchmod(fd, old.st_mode & 0777U);
}

// Writes the content to the disk. Returns 0, or an errno.
int writeDurably(int fd, std::string_view content) {
  if (const int why = writeAll(fd, content); why != 0) return why;
  return ::fsync(fd) == 0 ? 0 : errno;
}

// False if the disk is full. Called before the old content is lost. True also for a file that
// cannot tell.
bool hasRoom(int fd, std::size_t bytes) {
  return bytes == 0 || ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0 ||
         (errno != ENOSPC && errno != EDQUOT);
}

}  // namespace

Error ReplacedFile::failed(int os_errno) const { return fileError(operation_, os_errno, name_); }

Result<ReplacedFile> ReplacedFile::openPrivate(std::string operation, const std::string& name) {
  ReplacedFile out(std::move(operation), name, name);
  out.private_ = true;
  return out;
}

Result<ReplacedFile> ReplacedFile::open(std::string operation, const std::string& name) {
  const std::optional<std::string> target = behindLinks(name);
  ReplacedFile out(std::move(operation), name, target.value_or(name));
  struct stat facts{};
  const bool there = ::stat(out.target_.c_str(), &facts) == 0;
  if (!there && errno != ENOENT) return out.failed(errno);
  if (there && S_ISDIR(facts.st_mode)) return out.failed(EISDIR);
  if (there && ::access(out.target_.c_str(), W_OK) != 0) return out.failed(errno);
  out.in_place_ = !target || (there && !S_ISREG(facts.st_mode));
  if (out.in_place_) return out;
  std::string beside;
  const Fd trial = makeBeside(out.target_, kForAll, beside);
  if (!trial && !there) return out.failed(errno);
  out.in_place_ = !trial;
  if (trial) ::unlink(beside.c_str());
  return out;
}

Status ReplacedFile::write(std::string_view content) const {
  if (in_place_) return overwrite(content);
  std::string beside;
  const Fd fd = makeBeside(target_, private_ ? kForUs : kForAll, beside);
  if (!fd) return failed(errno);
  if (!private_) takeRights(fd.get(), target_);
  const int unwritten = writeDurably(fd.get(), content);
  if (unwritten == 0 && ::rename(beside.c_str(), target_.c_str()) == 0) return Ok{};
  const int why = unwritten != 0 ? unwritten : errno;
  ::unlink(beside.c_str());
  return unwritten != 0 || private_ ? Status(failed(why)) : overwrite(content);
}

Status ReplacedFile::overwrite(std::string_view content) const {
  const Fd fd(::open(target_.c_str(), O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC, kForAll));
  if (!fd || !hasRoom(fd.get(), content.size())) return failed(errno);
  // A device cannot be truncated.
  if (::ftruncate(fd.get(), 0) != 0 && errno != EINVAL) return failed(errno);
  if (const int why = writeAll(fd.get(), content); why != 0) return failed(why);
  return Ok{};
}

}  // namespace viaduct::base
