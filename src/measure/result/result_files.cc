#include "measure/result/result_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"
#include "base/read_fd.h"
#include "base/sizes.h"
#include "measure/result/baseline_log.h"
#include "measure/result/nixlbench_log.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kLargest = std::size_t{256} << 20U;

Error unreadable(const std::string& file, int os_errno) {
  return base::fileError("read result file", os_errno, file);
}

Result<std::string> contentOf(int fd, const std::string& file) {
  std::string out;
  if (const int error = base::readAll(fd, out, kLargest); error != 0)
    return unreadable(file, error);
  if (out.size() <= kLargest) return out;
  return Error{.code = Code::kUnsupported,
               .operation = "read result file",
               .detail = "larger than " + base::showSize(kLargest),
               .file = file,
               .remedy = "cut the table out of it"};
}

}  // namespace

std::string nameOfFile(const std::string& file) { return file == "-" ? "standard input" : file; }

Result<std::string> contentOfFile(const std::string& file) {
  if (file == "-") return contentOf(STDIN_FILENO, nameOfFile(file));
  const base::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return unreadable(file, errno);
  return contentOf(fd.get(), file);
}

Result<std::vector<Report>> readReports(const std::string& file) {
  VIADUCT_TRY(const std::string text, contentOfFile(file));
  return reportsFrom(text, nameOfFile(file));
}

Result<std::vector<Report>> reportsFrom(const std::string& text, const std::string& name) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const auto fail = [&](std::string detail) {
    return Error{.code = Code::kProtocol,
                 .operation = "read result file",
                 .detail = std::move(detail),
                 .file = name,
                 .remedy =
                     "give a file of `viaduct bench --json`, or output of nixlbench, "
                     "ucx_perftest, ib_write_bw, fi_rma_bw, nccl-tests or iperf3 -J"};
  };
  if (first == std::string::npos) return fail("it is empty");
  if (text[first] != '{') {
    if (isNixlbenchLog(text)) return reportsFromNixlbenchLog(text, name);
    if (isBaselineLog(text)) return reportsFromBaselineLog(text, name);
    return fail("the file holds neither JSON nor a table of a known tool");
  }
  VIADUCT_TRY(Report report,
              isIperf3(text) ? reportFromIperf3(text, name) : reportFromJson(text, name));
  std::vector<Report> out;
  out.push_back(std::move(report));
  return out;
}

}  // namespace viaduct::measure
