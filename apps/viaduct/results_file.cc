#include "viaduct/results_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_error.h"

namespace viaduct::app {
namespace {

// False if the disk is full. Asked before the old content is lost; not every file can tell.
bool hasRoom(int fd, std::size_t bytes) {
  return ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0 ||
         (errno != ENOSPC && errno != EDQUOT);
}

}  // namespace

Result<ResultsFile> ResultsFile::open(const std::string& name) {
  ResultsFile out;
  if (name.empty()) return out;
  out.name_ = name;
  out.file_.reset(std::fopen(name.c_str(), "ae"));
  if (out.file_) return out;
  Error error = base::fileError("--json", errno, name);
  error.remedy = "name a writable file in an existing folder";
  return error;
}

Status ResultsFile::write(const std::string& text) {
  if (!file_) return Ok{};
  const int fd = ::fileno(file_.get());
  // A device cannot be truncated.
  const bool cut = hasRoom(fd, text.size()) && (::ftruncate(fd, 0) == 0 || errno == EINVAL);
  const bool written = cut &&
                       std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() &&
                       std::fflush(file_.get()) == 0;
  if (written) return Ok{};
  Error error = base::fileError("--json", errno, name_);
  error.remedy = "the printed results are complete; name a file with room for the next run";
  return error;
}

}  // namespace viaduct::app
