#include "viaduct/results_file.h"

#include <unistd.h>

#include <cerrno>

#include "base/file_error.h"

namespace viaduct::app {
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
  // A device cannot be truncated.
  const bool cut = ::ftruncate(::fileno(file_.get()), 0) == 0 || errno == EINVAL;
  const bool written = cut &&
                       std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() &&
                       std::fflush(file_.get()) == 0;
  if (!written) return base::fileError("--json", errno, name_);
  return Ok{};
}

}  // namespace viaduct::app
