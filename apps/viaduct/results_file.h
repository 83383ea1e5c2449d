// The file that --json names. Threads: the main one.
#pragma once

#include <viaduct/result.h>

#include <cstdio>
#include <memory>
#include <string>

#include "measure/result/report.h"

namespace viaduct::app {

class ResultsFile {
 public:
  // Opens the file before the run, so that a file that cannot be written does not waste a
  // measurement. write() replaces the old content, and keeps it if the disk is full. An empty name
  // means no file.
  static Result<ResultsFile> open(const std::string& name);
  Status write(const measure::Report& report) { return write(toJson(report)); }
  Status write(const std::string& text);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace viaduct::app
