#include "measure/suite/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"
#include "base/read_fd.h"
#include "measure/import/files.h"

namespace viaduct::measure {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFlag = "--json";

Error failed(const std::string& file, int os_errno) {
  return base::fileError(kFlag, os_errno, file);
}

Error refused(const std::string& file, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = kFlag,
          .detail = std::move(detail),
          .file = file,
          .remedy = std::move(remedy)};
}

std::string partOf(const std::string& target) { return target + ".part"; }

Status writeAll(int fd, const std::string& text, const std::string& name) {
  if (const int error = base::writeAll(fd, text); error != 0) return failed(name, error);
  if (::fsync(fd) != 0) return failed(name, errno);
  return Ok{};
}

base::Fd openPart(const std::string& target) {
  return base::Fd(::open(partOf(target).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
}

// The file is replaced by a rename. So its folder must be writable, and it must not be a device.
Status canBeWritten(const std::string& name, const std::string& target) {
  std::error_code none;
  const fs::file_status status = fs::status(target, none);
  if (fs::exists(status) && !fs::is_regular_file(status))
    return refused(name, "the file is not a regular file", "name another file");
  if (fs::exists(status) && ::access(target.c_str(), W_OK) != 0) return failed(name, errno);
  const base::Fd part = openPart(target);
  if (!part) return failed(partOf(name), errno);
  ::unlink(partOf(target).c_str());
  return Ok{};
}

// Follows links, even if the last one leads to a file that does not exist yet.
std::string behindLinks(const std::string& name) {
  constexpr int kMostLinks = 40;
  std::error_code none;
  fs::path at = name;
  for (int i = 0; i < kMostLinks && fs::is_symlink(at, none); ++i)
    at = at.parent_path() / fs::read_symlink(at, none);
  return at.string();
}

bool isBlank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

}  // namespace

Result<SuiteFile> SuiteFile::open(const std::string& name, bool fresh) {
  SuiteFile out;
  if (name.empty()) return out;
  out.name_ = name;
  out.target_ = behindLinks(name);
  VIADUCT_CHECK(canBeWritten(name, out.target_));
  std::error_code none;
  if (!fs::exists(out.target_, none)) return out;
  VIADUCT_TRY(const std::string text, contentOfFile(out.target_));
  if (isBlank(text)) return out;
  if (!isSuiteJson(text))
    return refused(name, "the file holds no suite rounds", "name another file, or remove this one");
  if (fresh) return out;
  auto kept = suiteFromJson(text, name);
  if (!kept) {
    Error error = std::move(kept).error();
    error.remedy += error.remedy.empty() ? "" : ", or ";
    error.remedy += "start again with --fresh";
    return error;
  }
  out.kept_ = *std::move(kept);
  return out;
}

Status SuiteFile::write(const Suite& suite) const {
  if (name_.empty()) return Ok{};
  const base::Fd part = openPart(target_);
  if (!part) return failed(partOf(name_), errno);
  auto done = writeAll(part.get(), toJson(suite), partOf(name_));
  if (done && std::rename(partOf(target_).c_str(), target_.c_str()) != 0)
    done = failed(name_, errno);
  if (!done) ::unlink(partOf(target_).c_str());
  return done;
}

Result<Suite> goOn(const SuiteFile& file, Suite wanted) {
  const std::optional<Suite>& kept = file.kept();
  if (!kept) return wanted;
  const auto found = differencesOf(*kept, wanted);
  if (!found.empty())
    return refused(file.name(),
                   fmt::format("its {} rounds have other settings: {}", kept->rounds_done,
                               fmt::join(found, "; ")),
                   "use the same settings, another file, or --fresh");
  const std::size_t whole = kept->rounds_done * measuredTests(*kept).size();
  if (kept->runs.size() != whole)
    return refused(file.name(),
                   fmt::format("the file has {} runs, but {} rounds need {}", kept->runs.size(),
                               kept->rounds_done, whole),
                   "use another file, or --fresh");
  Suite out = *kept;
  out.rounds = std::max(wanted.rounds, out.rounds_done);
  out.least_effect = wanted.least_effect;
  return out;
}

}  // namespace viaduct::measure
