#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "measure/report/page.h"
#include "measure/result/files.h"
#include "viaduct/commands.h"

namespace viaduct::app {
namespace {

int fail(const Error& error) {
  fmt::print(stderr, "viaduct report: {}\n", error.text());
  return kExitUsage;
}

Status writePage(const std::string& page, const std::string& file) {
  const bool to_stdout = file == "-";
  std::FILE* out = to_stdout ? stdout : std::fopen(file.c_str(), "we");
  bool written = out != nullptr && std::fwrite(page.data(), 1, page.size(), out) == page.size();
  written = out != nullptr && std::fflush(out) == 0 && written;
  const int why = errno;
  const bool closed = out == nullptr || to_stdout || std::fclose(out) == 0;
  if (written && closed) return Ok{};
  Error error = systemError(Code::kDevice, "write the page", written ? errno : why);
  error.device = to_stdout ? "standard output" : file;
  return error;
}

}  // namespace

int runReport(const ReportCommand& command) {
  std::vector<std::vector<measure::Report>> reports;
  for (const std::string& file : command.files) {
    auto read = measure::readReports(file);
    if (!read) return fail(read.error());
    reports.push_back(*std::move(read));
  }
  const auto sources = measure::sourcesOf(command.files, std::move(reports));
  const auto written = writePage(measure::reportPage(sources, VIADUCT_VERSION), command.out);
  if (!written) {
    fail(written.error());
    return kExitFailed;
  }
  return kExitOk;
}

}  // namespace viaduct::app
