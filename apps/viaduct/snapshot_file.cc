#include "viaduct/snapshot_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/fd.h"

namespace viaduct::app {
namespace {

using diag::SnapshotEntry;
using Kind = SnapshotEntry::Kind;

constexpr std::string_view kTop = "node";
constexpr std::uint64_t kMostUnpacked = std::uint64_t{256} << 20U;
constexpr std::size_t kMostEntries = 1'000'000;

struct FreeArchive {
  void operator()(archive* one) const { ::archive_free(one); }
};
struct FreeEntry {
  void operator()(archive_entry* one) const { ::archive_entry_free(one); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;
using Entry = std::unique_ptr<archive_entry, FreeEntry>;

Error failed(const char* operation, const std::string& file, const std::string& why) {
  return {
      .code = Code::kInvalid, .operation = operation, .detail = fmt::format("{}: {}", file, why)};
}

std::string whyOf(archive* one) {
  const char* const text = ::archive_error_string(one);
  return text == nullptr ? "unknown error" : text;
}

bool writeEntry(archive* to, const SnapshotEntry& from, std::time_t now) {
  const Entry entry(::archive_entry_new());
  ::archive_entry_set_pathname(entry.get(), (std::string(kTop) + from.path).c_str());
  ::archive_entry_set_mtime(entry.get(), now, 0);
  ::archive_entry_set_perm(entry.get(), from.kind == Kind::kFolder ? 0755 : 0644);
  switch (from.kind) {
    case Kind::kFile:
      ::archive_entry_set_filetype(entry.get(), AE_IFREG);
      ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(from.text.size()));
      break;
    case Kind::kFolder:
      ::archive_entry_set_filetype(entry.get(), AE_IFDIR);
      break;
    case Kind::kLink:
      ::archive_entry_set_filetype(entry.get(), AE_IFLNK);
      ::archive_entry_set_symlink(entry.get(), from.target.c_str());
      break;
  }
  return ::archive_write_header(to, entry.get()) == ARCHIVE_OK &&
         (from.text.empty() || ::archive_write_data(to, from.text.data(), from.text.size()) ==
                                   static_cast<la_ssize_t>(from.text.size()));
}

// Creates and opens folders below an open folder, and never follows a link.
class Unpacker {
 public:
  explicit Unpacker(const std::string& folder)
      : top_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

  // Returns an empty text, or the reason of a failure.
  std::string unpack(archive* from, archive_entry* entry) {
    const char* const name = ::archive_entry_pathname(entry);
    const std::string path = name == nullptr ? "" : name;
    if (path != kTop && !path.starts_with(std::string(kTop) + "/")) return "is no part of a node";
    if (::archive_entry_hardlink(entry) != nullptr) return "is a hard link";
    if (path == kTop) return {};
    const auto slash = path.rfind('/');
    const base::Fd folder = makeFolders(path.substr(0, slash));
    if (!folder) return whyNoFolder();
    const std::string last = path.substr(slash + 1);
    if (last.empty() || last == "." || last == "..") return last.empty() ? "" : "leads upwards";
    switch (::archive_entry_filetype(entry)) {
      case AE_IFDIR:
        return makeFolder(folder.get(), last) ? "" : ::strerror(errno);
      case AE_IFLNK:
        return ::symlinkat(::archive_entry_symlink(entry), folder.get(), last.c_str()) == 0
                   ? ""
                   : ::strerror(errno);
      case AE_IFREG:
        return writeFile(from, folder.get(), last);
      default:
        return "is neither a file nor a folder nor a link";
    }
  }
  bool open() const { return top_.operator bool(); }

 private:
  static std::string whyNoFolder() {
    if (errno == ELOOP || errno == EXDEV || errno == EINVAL)
      return "would lie outside of the folder, or below a link";
    const char* const hint = errno == ENOSYS || errno == EPERM
                                 ? "; unpacking needs openat2 (Linux 5.6), which a container's "
                                   "seccomp profile may deny: unpack the file by tar"
                                 : "";
    return fmt::format("has a folder that cannot be opened: {}{}", ::strerror(errno), hint);
  }
  static bool makeFolder(int folder, const std::string& name) {
    return ::mkdirat(folder, name.c_str(), 0755) == 0 || errno == EEXIST;
  }
  base::Fd openFolder(const std::string& path) const {
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    return base::Fd(
        static_cast<int>(::syscall(SYS_openat2, top_.get(), path.c_str(), &how, sizeof how)));
  }
  base::Fd makeFolders(const std::string& path) const {
    if (base::Fd there = openFolder(path)) return there;
    const auto slash = path.rfind('/');
    if (slash == std::string::npos)
      return makeFolder(top_.get(), path) ? openFolder(path) : base::Fd();
    const base::Fd above = makeFolders(path.substr(0, slash));
    const std::string last = path.substr(slash + 1);
    if (!above) return {};
    if (last == "." || last == "..") {
      errno = EINVAL;
      return {};
    }
    return makeFolder(above.get(), last) ? openFolder(path) : base::Fd();
  }
  std::string writeFile(archive* from, int folder, const std::string& name) {
    const base::Fd out(
        ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!out) return ::strerror(errno);
    std::array<char, 65536> part;
    for (;;) {
      const la_ssize_t got = ::archive_read_data(from, part.data(), part.size());
      if (got == 0) return {};
      if (got < 0) return whyOf(from);
      bytes_ += static_cast<std::uint64_t>(got);
      if (bytes_ > kMostUnpacked) return "the snapshot has more than 256 MiB";
      if (::write(out.get(), part.data(), static_cast<std::size_t>(got)) != got)
        return ::strerror(errno);
    }
  }

  base::Fd top_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Status writeSnapshot(const std::string& file, const std::vector<SnapshotEntry>& entries) {
  const auto wrong = [&](const std::string& why) { return failed("write snapshot", file, why); };
  const std::string beside = file + ".part";
  const Archive to(::archive_write_new());
  ::archive_write_add_filter_gzip(to.get());
  ::archive_write_set_format_pax_restricted(to.get());
  if (::archive_write_open_filename(to.get(), beside.c_str()) != ARCHIVE_OK)
    return wrong(::strerror(::archive_errno(to.get())));
  bool good = true;
  const std::time_t now = std::time(nullptr);
  for (std::size_t i = 0; good && i < entries.size(); ++i)
    good = writeEntry(to.get(), entries[i], now);
  if (good) good = ::archive_write_close(to.get()) == ARCHIVE_OK;
  const std::string why = good ? "" : whyOf(to.get());
  if (good && ::rename(beside.c_str(), file.c_str()) == 0) return Ok{};
  const std::string reason = good ? ::strerror(errno) : why;
  ::unlink(beside.c_str());
  return wrong(reason);
}

Status unpackSnapshot(const std::string& file, const std::string& folder) {
  const auto wrong = [&](const std::string& why) { return failed("read snapshot", file, why); };
  const Archive from(::archive_read_new());
  ::archive_read_support_filter_gzip(from.get());
  ::archive_read_support_format_tar(from.get());
  if (::archive_read_open_filename(from.get(), file.c_str(), 65536) != ARCHIVE_OK)
    return wrong(whyOf(from.get()));
  Unpacker unpacker(folder);
  if (!unpacker.open()) return failed("read snapshot", folder, ::strerror(errno));
  for (std::size_t count = 0;; ++count) {
    archive_entry* entry = nullptr;
    const int code = ::archive_read_next_header(from.get(), &entry);
    if (code == ARCHIVE_EOF) return count > 0 ? Status(Ok{}) : Status(wrong("it holds nothing"));
    if (code != ARCHIVE_OK) return wrong(whyOf(from.get()));
    if (count == kMostEntries) return wrong("it has more than a million entries");
    if (const std::string why = unpacker.unpack(from.get(), entry); !why.empty()) {
      const char* const name = ::archive_entry_pathname(entry);
      return wrong(fmt::format("{} {}", name == nullptr ? "an entry" : name, why));
    }
  }
}

}  // namespace viaduct::app
