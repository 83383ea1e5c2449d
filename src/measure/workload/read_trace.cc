#include "measure/workload/read_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"
#include "base/json.h"
#include "base/read_fd.h"
#include "base/sizes.h"
#include "base/text.h"
#include "measure/workload/trace_format.h"

namespace viaduct::measure {
namespace {

// Limits for an untrusted file, so that reading keeps less than 2 GiB.
constexpr std::size_t kMostLine = std::size_t{4} << 20U;
constexpr std::size_t kMostRequests = std::size_t{1} << 23U;
constexpr std::size_t kMostIds = std::size_t{1} << 26U;       // of all requests
constexpr std::uint64_t kMostTime = std::uint64_t{1} << 58U;  // microseconds: 9,133 years
constexpr std::size_t kPart = std::size_t{1} << 20U;          // bytes of one read
constexpr std::uint64_t kProgressEvery = 4096;                // requests
constexpr auto kReadTrace = "read trace";
constexpr auto kOtherTrace = "name a trace, or make one with viaduct kv generate";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// First bytes of files that people mistake for traces.
struct OtherFile {
  std::string_view start;
  const char *what, *remedy;
};
constexpr std::array kOtherFiles{
    OtherFile{"\x1f\x8b", "is compressed by gzip", "unpack it with gunzip"},
    OtherFile{"\x28\xb5\x2f\xfd", "is compressed by zstd", "unpack it with unzstd"},
    OtherFile{"PK\x03\x04", "is a zip archive", "unpack it with unzip"},
    OtherFile{"PAR1", "is a Parquet file", "convert it to JSON lines or CSV"},
    OtherFile{"\xff\xfe", "is text in UTF-16", "convert it with iconv -f UTF-16 -t UTF-8"},
    OtherFile{"version https://git-lfs", "is a pointer of Git LFS and not the trace",
              "fetch the trace with git lfs pull"},
    OtherFile{"<", "is a web page", "fetch the raw file"},
};

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Returns the names of all formats, for the remedy of an error.
std::string knownFormats() {
  std::vector<std::string> out;
  for (const TraceFormatFacts& one : traceFormats())
    out.push_back(fmt::format("{} ({}: {})", traceFormatName(one.format),
                              one.csv ? "CSV" : "JSON lines", fmt::join(one.telling, ", ")));
  return fmt::format("{}", fmt::join(out, "; "));
}

class TraceParser {
 public:
  TraceParser(const std::string& name, const TraceReading& how) : name_(name), how_(how) {}

  // Parses one line. `ended`: a line break follows it.
  Status line(std::string_view text, bool ended) {
    ++number_;
    if (number_ == 1 && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    if (number_ == 1) VIADUCT_CHECK(looksLikeText(text));
    text = base::trimmed(text);
    if (text.empty()) return Ok{};
    auto done = facts_ != nullptr && facts_->csv ? row(text)
                : text.starts_with('{')          ? object(text)
                : facts_ == nullptr              ? firstWords(text)
                                                 : noObject();
    if (done) return Ok{};
    return wrong(std::move(done).error(), ended);
  }

  Status lineTooLong(std::string_view start) {
    ++number_;
    if (number_ == 1) VIADUCT_CHECK(looksLikeText(start));
    return wrong({.detail = "longer than " + base::showSize(kMostLine),
                  .cause = "this is no text of lines",
                  .remedy = "write each request in a line of its own"},
                 true);
  }

  bool enough() const { return how_.requests != 0 && out_.trace.requests.size() >= how_.requests; }

  Result<ReadTrace> finish() {
    std::vector<TraceRequest>& all = out_.trace.requests;
    if (all.empty()) return noRequest();
    if (!std::ranges::is_sorted(all, {}, &TraceRequest::time_us)) {
      std::ranges::stable_sort(all, {}, &TraceRequest::time_us);
      if (late_ != 0)
        note(late_, "request is earlier than the line above",
             "requests are earlier than the lines above",
             "requests are replayed in the order of their times");
    }
    note(empty_, "request has no tokens", "requests have no tokens", "left out");
    note(failed_, "request failed", "requests failed", "left out");
    note(
        extra_ids_, "request has more hash ids than tokens",
        "requests have more hash ids than tokens",
        fmt::format("an id stands for {} tokens (see --hash-tokens), and ids behind the last token "
                    "are ignored",
                    out_.trace.id_tokens));
    note(few_ids_, "request has tokens without a hash id", "requests have tokens without hash ids",
         fmt::format("an id stands for {} tokens (see --hash-tokens), and the others are never "
                     "shared",
                     out_.trace.id_tokens));
    return std::move(out_);
  }

 private:
  Error wrong(Error error, bool ended) const {
    error.code = Code::kInvalid;
    error.operation = kReadTrace;
    error.detail = fmt::format("line {}: {}", number_, error.detail);
    error.file = name_;
    if (!ended && facts_ != nullptr) {
      error.cause = "the last line has no end, so the file was cut off";
      error.remedy = "fetch the file again, or remove its last line";
    } else if (error.cause.empty() && facts_ != nullptr) {
      error.cause = fmt::format(
          "the file was taken for a trace in {}'s format, and this line is not", facts_->owner);
    }
    return error;
  }
  Error noRequest() const {
    Error out{.code = Code::kInvalid, .operation = kReadTrace, .file = name_};
    const std::uint64_t left_out = empty_ + failed_;
    out.detail = left_out == 0 ? "the file has no request"
                               : fmt::format("each of {} has no tokens, or failed",
                                             counted(left_out, "request"));
    out.cause = number_ == 0 ? "the file is empty" : "";
    out.remedy = kOtherTrace;
    return out;
  }

  Status looksLikeText(std::string_view text) const {
    for (const OtherFile& other : kOtherFiles)
      if (text.starts_with(other.start))
        return wrong({.detail = fmt::format("the file {}", other.what), .remedy = other.remedy},
                     true);
    if (text.find('\0') == std::string_view::npos) return Ok{};
    return wrong({.detail = "binary data",
                  .cause = "the file is no trace, or it is compressed",
                  .remedy = "name a text file; the formats are " + knownFormats()},
                 true);
  }

  static std::vector<std::string> missingNames(const TraceFormatFacts& facts,
                                               const TraceFields& fields) {
    std::vector<std::string> out;
    for (const char* const name : facts.telling)
      if (!fields.has(name)) out.emplace_back(name);
    return out;
  }

  // Chooses the format of which the first line lacks the fewest names. Fails if any name is
  // missing.
  Status recognise(const TraceFields& fields, bool csv) {
    const TraceFormatFacts* nearest = nullptr;
    std::vector<std::string> missing;
    for (const TraceFormatFacts& one : traceFormats()) {
      std::vector<std::string> names = missingNames(one, fields);
      if (one.csv != csv || (nearest != nullptr && names.size() >= missing.size())) continue;
      nearest = &one;
      missing = std::move(names);
    }
    if (!missing.empty())
      return Error{
          .detail = fmt::format(
              "no trace format fits; the nearest is that of {}, and {} {} missing", nearest->owner,
              fmt::join(missing, " and "), missing.size() == 1 ? "is" : "are"),
          .remedy = "the formats are " + knownFormats()};
    facts_ = nearest;
    out_.trace.format = nearest->format;
    out_.trace.id_tokens = nearest->id_tokens;
    if (nearest->id_tokens != 0 && how_.id_tokens != 0) out_.trace.id_tokens = how_.id_tokens;
    return Ok{};
  }

  Status object(std::string_view text) {
    auto json = base::parseJson(text);
    if (!json)
      return Error{.detail = json.error().detail,
                   .cause = json.error().cause,
                   .remedy = "write one JSON object in each line"};
    const TraceFields fields(*json);
    if (facts_ == nullptr) VIADUCT_CHECK(recognise(fields, false));
    return add(fields);
  }
  Status noObject() const {
    return Error{.detail = "no JSON object", .remedy = "write one JSON object in each line"};
  }

  // Reads a first line that is no JSON object: the header of a table.
  Status firstWords(std::string_view text) {
    if (text.starts_with('[')) return noObject();
    VIADUCT_TRY(names_, csvFieldsOf(text));
    return recognise(TraceFields(names_, names_), true);
  }
  Status row(std::string_view text) {
    VIADUCT_TRY(const std::vector<std::string> fields, csvFieldsOf(text));
    if (fields.size() == names_.size()) return add(TraceFields(names_, fields));
    return Error{.detail = fmt::format("{}, but the header has {}", counted(fields.size(), "field"),
                                       names_.size()),
                 .remedy = "give one field for each column"};
  }

  Status add(const TraceFields& fields) {
    VIADUCT_TRY(TraceLine line, facts_->read(fields));
    VIADUCT_CHECK(setTime(line));
    TraceRequest& request = line.request;
    fitIds(request);
    ids_ += request.hash_ids.size();
    std::vector<TraceRequest>& all = out_.trace.requests;
    if (std::max(all.size(), last_.size()) >= kMostRequests || ids_ > kMostIds)
      return Error{
          .detail = fmt::format("more than {} requests, or {} hash ids", kMostRequests, kMostIds),
          .cause = "the trace is too large for one replay",
          .remedy = "replay a part of it: --requests 100000"};
    const bool empty = request.input_length == 0;
    if (empty || line.failed) {
      ++(empty ? empty_ : failed_);
      return Ok{};
    }
    all.push_back(std::move(request));
    if (how_.progress && all.size() % kProgressEvery == 0) how_.progress(all.size());
    return Ok{};
  }

  // Computes the time of a line with a delay. The delay counts from the previous request of its
  // session, or else from the file's first request.
  Status setTime(TraceLine& line) {
    if (line.delay_us) {
      const auto before = last_.find(line.session);
      line.request.time_us =
          (before == last_.end() ? first_.value_or(0) : before->second) + *line.delay_us;
    }
    if (line.request.time_us > kMostTime)
      return Error{.detail = "the delays of this session add up to thousands of years",
                   .remedy = "write \"delay\" in milliseconds"};
    if (!first_) first_ = line.request.time_us;
    // Counts requests out of order, except in sessions, because sessions may overlap.
    if (!line.delay_us && line.session == 0) {
      late_ += line.request.time_us < above_ ? 1 : 0;
      above_ = line.request.time_us;
    }
    if (line.delay_us || line.session != 0) last_[line.session] = line.request.time_us;
    return Ok{};
  }

  void fitIds(TraceRequest& request) {
    std::vector<std::uint64_t>& ids = request.hash_ids;
    if (ids.empty() || request.input_length == 0) return;
    const std::uint32_t each = out_.trace.id_tokens;
    const std::size_t needed = (std::size_t{request.input_length} + each - 1) / each;
    extra_ids_ += ids.size() > needed ? 1 : 0;
    few_ids_ += ids.size() < needed ? 1 : 0;
    ids.resize(std::min(ids.size(), needed));
  }

  void note(std::uint64_t count, const char* one, const char* many, const std::string& then) {
    if (count == 0) return;
    out_.remarks.push_back(fmt::format("{} {}: {}", count, count == 1 ? one : many, then));
  }

  const std::string& name_;
  const TraceReading& how_;
  ReadTrace out_;
  std::size_t number_ = 0;                   // number of the current line
  const TraceFormatFacts* facts_ = nullptr;  // of the recognised format
  std::vector<std::string> names_;           // of the columns
  std::uint64_t empty_ = 0, failed_ = 0, late_ = 0, extra_ids_ = 0, few_ids_ = 0;  // requests
  std::size_t ids_ = 0;
  std::optional<std::uint64_t> first_;                     // time of the first request
  std::uint64_t above_ = 0;                                // time of the last line with a time
  std::unordered_map<std::uint64_t, std::uint64_t> last_;  // times of the sessions' last requests
};

Error cannotRead(int os_errno, const std::string& file) {
  Error out = base::fileError(kReadTrace, os_errno, file);
  out.remedy = kOtherTrace;
  return out;
}

// Gives the parser all whole lines of the text, and removes them.
Status takeLines(std::string& text, TraceParser& parser) {
  std::size_t at = 0;
  while (!parser.enough()) {
    const auto end = text.find('\n', at);
    if (end == std::string::npos) break;
    VIADUCT_CHECK(parser.line(std::string_view(text).substr(at, end - at), true));
    at = end + 1;
  }
  text.erase(0, at);
  return Ok{};
}

}  // namespace

Result<ReadTrace> parseTrace(std::string_view text, const std::string& name,
                             const TraceReading& how) {
  TraceParser parser(name, how);
  while (!text.empty() && !parser.enough()) {
    const auto end = std::min(text.find('\n'), text.size());
    VIADUCT_CHECK(parser.line(text.substr(0, end), end < text.size()));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.finish();
}

Result<ReadTrace> readTrace(const std::string& file, const TraceReading& how) {
  const base::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return cannotRead(errno, file);
  TraceParser parser(file, how);
  std::string text;
  for (bool more = true; more && !parser.enough();) {
    const std::size_t before = text.size();
    if (const int error = base::readAll(fd.get(), text, before + kPart - 1); error != 0)
      return cannotRead(error, file);
    more = text.size() == before + kPart;
    VIADUCT_CHECK(takeLines(text, parser));
    if (text.size() > kMostLine) return parser.lineTooLong(text).error();
  }
  if (!text.empty() && !parser.enough()) VIADUCT_CHECK(parser.line(text, false));
  return parser.finish();
}

}  // namespace viaduct::measure
