#include "viaduct/snapshot_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "base/printable.h"
#include "base/replaced_file.h"

namespace viaduct::app {
namespace {

using diag::SnapshotEntry;
using Kind = diag::SnapshotEntryKind;

constexpr std::string_view kTop = "node";
constexpr std::uint64_t kMostUnpacked = std::uint64_t{256} << 20U;
constexpr std::size_t kMostEntries = 100'000;
constexpr std::size_t kLongestPath = 1000;  // a deeper folder could not be removed by its path

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
  ::archive_entry_set_filetype(entry.get(), from.kind == Kind::kFile     ? AE_IFREG
                                            : from.kind == Kind::kFolder ? AE_IFDIR
                                                                         : AE_IFLNK);
  if (from.kind == Kind::kFile)
    ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(from.text.size()));
  if (from.kind == Kind::kLink) ::archive_entry_set_symlink(entry.get(), from.target.c_str());
  return ::archive_write_header(to, entry.get()) == ARCHIVE_OK &&
         (from.text.empty() || ::archive_write_data(to, from.text.data(), from.text.size()) ==
                                   static_cast<la_ssize_t>(from.text.size()));
}

la_ssize_t keepPacked(archive*, void* into, const void* bytes, std::size_t count) {
  static_cast<std::string*>(into)->append(static_cast<const char*>(bytes), count);
  return static_cast<la_ssize_t>(count);
}

// Unpacks entries below a folder. libarchive refuses "..", and files behind a link.
class Unpacker {
 public:
  explicit Unpacker(std::string folder) : folder_(std::move(folder)) {
    ::archive_write_disk_set_options(disk_.get(), ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                                                      ARCHIVE_EXTRACT_SECURE_NODOTDOT |
                                                      ARCHIVE_EXTRACT_NO_OVERWRITE);
  }

  // Returns an empty text, or the reason of a failure.
  std::string unpack(archive* from, archive_entry* entry, const std::string& path) {
    const auto type = ::archive_entry_filetype(entry);
    if (path != kTop && !path.starts_with(std::string(kTop) + "/")) return "is no part of a node";
    if (path.size() > kLongestPath) return "has a path above 1000 bytes";
    if (::archive_entry_hardlink(entry) != nullptr) return "is a hard link";
    if (type != AE_IFDIR && type != AE_IFLNK && type != AE_IFREG)
      return "is neither a file nor a folder nor a link";
    if (type != AE_IFDIR && !names_.insert(path).second) return "is there twice";
    bytes_ += static_cast<std::uint64_t>(::archive_entry_size(entry));
    if (bytes_ > kMostUnpacked) return "makes the snapshot larger than 256 MiB";
    ::archive_entry_set_pathname(entry, (folder_ + "/" + path).c_str());
    ::archive_entry_set_perm(entry, type == AE_IFDIR ? 0755 : 0644);
    return ::archive_read_extract2(from, entry, disk_.get()) == ARCHIVE_OK ? "" : whyOf(from);
  }

 private:
  const std::string folder_;
  const Archive disk_{::archive_write_disk_new()};
  std::set<std::string> names_;
  std::uint64_t bytes_ = 0;
};

// Unpacks all entries. Returns why it cannot, or "".
std::string unpackAll(archive* from, Unpacker& unpacker, const base::StopFlag* stop) {
  for (std::size_t count = 0; stop == nullptr || !*stop; ++count) {
    archive_entry* entry = nullptr;
    const int code = ::archive_read_next_header(from, &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK) return base::printable(whyOf(from));
    if (count == kMostEntries) return "it has more than 100,000 entries";
    const char* const name = ::archive_entry_pathname(entry);
    const std::string path = name == nullptr ? "an entry" : name;
    if (const std::string why = unpacker.unpack(from, entry, path); !why.empty())
      return fmt::format("{} {}", base::printable(path), base::printable(why));
  }
  return {};
}

}  // namespace

Status writeSnapshot(const std::string& file, const std::vector<SnapshotEntry>& entries) {
  VIADUCT_TRY(const auto target, base::ReplacedFile::open("write the snapshot", file));
  std::string packed;
  const Archive to(::archive_write_new());
  ::archive_write_add_filter_gzip(to.get());
  ::archive_write_set_format_pax_restricted(to.get());
  ::archive_write_set_bytes_in_last_block(to.get(), 1);  // no zeros behind the end
  bool good = ::archive_write_open(to.get(), &packed, nullptr, keepPacked, nullptr) == ARCHIVE_OK;
  const std::time_t now = std::time(nullptr);
  for (std::size_t i = 0; good && i < entries.size(); ++i)
    good = writeEntry(to.get(), entries[i], now);
  if (!good || ::archive_write_close(to.get()) != ARCHIVE_OK)
    return failed("write the snapshot", file, whyOf(to.get()));
  return target.write(packed);
}

Status unpackSnapshot(const std::string& file, const std::string& folder,
                      const base::StopFlag* stop) {
  const auto wrong = [&](const std::string& why) { return failed("read snapshot", file, why); };
  const Archive from(::archive_read_new());
  ::archive_read_support_filter_gzip(from.get());
  ::archive_read_support_format_tar(from.get());
  if (::archive_read_open_filename(from.get(), file.c_str(), 65536) != ARCHIVE_OK)
    return wrong(whyOf(from.get()));
  std::error_code none;
  Unpacker unpacker(std::filesystem::canonical(folder, none).string());
  if (none) return failed("read snapshot", folder, none.message());
  if (const std::string why = unpackAll(from.get(), unpacker, stop); !why.empty())
    return wrong(why);
  if (stop != nullptr && *stop) return Error{.code = Code::kCancelled, .operation = "doctor"};
  // If "node" were a link, it would lead to a folder of this machine.
  const std::string top = folder + "/" + std::string(kTop);
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(top, none)))
    return wrong("it holds no folder \"node\"");
  return Ok{};
}

}  // namespace viaduct::app
