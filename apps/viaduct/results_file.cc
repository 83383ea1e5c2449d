#include "viaduct/results_file.h"

#include <utility>

namespace viaduct::app {

Result<ResultsFile> ResultsFile::open(const std::string& name, const char* flag) {
  ResultsFile out;
  if (name.empty()) return out;
  auto file = base::ReplacedFile::open(flag, name);
  if (!file) {
    Error error = std::move(file).error();
    error.remedy = "name a writable file in an existing folder";
    return error;
  }
  out.file_ = *std::move(file);
  return out;
}

Status ResultsFile::write(const std::string& text) {
  if (!file_) return Ok{};
  auto written = file_->write(text);
  if (written) return Ok{};
  Error error = std::move(written).error();
  error.remedy = "the printed results are complete; name a file with room for the next run";
  return error;
}

}  // namespace viaduct::app
