#include "measure/workload/traffic_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"
#include "base/read_fd.h"
#include "base/sizes.h"

namespace viaduct::measure {
namespace {

constexpr std::string_view kBlank = " \t\r,";
constexpr std::size_t kLargestFile = std::size_t{1} << 20U;
constexpr auto kReadMatrix = "read traffic matrix";

class TrafficParser {
 public:
  explicit TrafficParser(const std::string& name) : name_(name) {}

  Result<TrafficMatrix> parse(std::string_view text) {
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      ++line_;
      VIADUCT_CHECK(readLine(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return finished();
  }

 private:
  Error wrong(std::string detail, std::string remedy) const {
    return {.code = Code::kInvalid,
            .operation = kReadMatrix,
            .detail = std::move(detail),
            .file = name_,
            .remedy = std::move(remedy)};
  }
  Error wrongAt(std::size_t column, const std::string& detail, std::string remedy) const {
    return wrong(fmt::format("line {} column {}: {}", line_, column + 1, detail),
                 std::move(remedy));
  }

  Status readLine(std::string_view line) {
    line = line.substr(0, line.find('#'));
    std::uint32_t count = 0;
    std::size_t at = line.find_first_not_of(kBlank);
    for (; at != std::string_view::npos; at = line.find_first_not_of(kBlank, at)) {
      const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
      VIADUCT_CHECK(readSize(line.substr(at, end - at), at, count++));
      at = end;
    }
    if (count == 0) return Ok{};
    if (rows_++ == 0) out_.members = count;
    if (count == out_.members) return Ok{};
    return wrongAt(0, fmt::format("{} sizes, but the first row has {}", count, out_.members),
                   "give one size for each member in each row");
  }

  Status readSize(std::string_view word, std::size_t at, std::uint32_t column) {
    const auto size = base::parseSize(word);
    if (!size) return wrongAt(at, size.error().detail, size.error().remedy);
    if (*size != 0 && column == rows_)
      return wrongAt(at, fmt::format("member {} would send to itself", column),
                     "the diagonal of the matrix has to be 0");
    if (column >= kMostMatrixMembers)
      return wrongAt(at, fmt::format("a matrix has at most {} members", kMostMatrixMembers), {});
    out_.bytes.push_back(*size);
    return Ok{};
  }

  Result<TrafficMatrix> finished() {
    if (rows_ != out_.members || rows_ < 2)
      return wrong(fmt::format("{} rows of {} sizes are no matrix of members", rows_, out_.members),
                   "give one row and one column for each of at least 2 members");
    if (std::ranges::all_of(out_.bytes, [](std::uint64_t size) { return size == 0; }))
      return wrong("no member sends anything", "give a size above 0");
    return std::move(out_);
  }

  const std::string& name_;
  TrafficMatrix out_;
  std::size_t line_ = 0;
  std::uint32_t rows_ = 0;
};

}  // namespace

Result<TrafficMatrix> readTraffic(const std::string& file) {
  const base::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return base::fileError(kReadMatrix, errno, file);
  std::string text;
  if (const int error = base::readAll(fd.get(), text, kLargestFile); error != 0)
    return base::fileError(kReadMatrix, error, file);
  if (text.size() <= kLargestFile) return parseTraffic(text, file);
  return Error{.code = Code::kInvalid,
               .operation = kReadMatrix,
               .detail = "larger than " + base::showSize(kLargestFile),
               .file = file};
}

Result<TrafficMatrix> parseTraffic(std::string_view text, const std::string& name) {
  return TrafficParser(name).parse(text);
}

}  // namespace viaduct::measure
