#include "measure/workload/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"
#include "base/json.h"
#include "base/read_fd.h"
#include "base/sizes.h"
#include "base/text.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kLargestTrace = std::size_t{1} << 30U;
constexpr std::uint64_t kMostLength = std::uint64_t{1} << 24U;  // tokens
constexpr std::uint64_t kMostTime = std::uint64_t{1} << 40U;    // milliseconds
constexpr auto kReadTrace = "read trace";

class TraceParser {
 public:
  explicit TraceParser(const std::string& name) : name_(name) {}

  Result<Trace> parse(std::string_view text) {
    Trace out;
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      ++line_;
      if (const std::string_view line = base::trimmed(text.substr(0, end)); !line.empty()) {
        VIADUCT_TRY(TraceRequest request, requestOf(line));
        if (!out.empty() && request.timestamp < out.back().timestamp)
          return wrong(fmt::format("timestamp {} is before {} of the request above",
                                   request.timestamp, out.back().timestamp),
                       "sort the lines by timestamp");
        out.push_back(std::move(request));
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (!out.empty()) return out;
    return Error{.code = Code::kInvalid,
                 .operation = kReadTrace,
                 .detail = "the file has no request",
                 .file = name_};
  }

 private:
  Error wrong(const std::string& detail, std::string remedy) const {
    return {.code = Code::kInvalid,
            .operation = kReadTrace,
            .detail = fmt::format("line {}: {}", line_, detail),
            .file = name_,
            .remedy = std::move(remedy)};
  }

  // Reads a whole number. Traces may write it as 27.0.
  Result<std::uint64_t> numberOf(const base::Json& json, const std::string& key,
                                 std::uint64_t most) const {
    const auto out = [&](const std::string& why) {
      return wrong(fmt::format("{} {}", key, why),
                   fmt::format("write \"{}\" as a whole number from 0 to {}", key, most));
    };
    if (json.is_number_unsigned()) {
      const auto value = json.get<std::uint64_t>();
      return value <= most ? Result<std::uint64_t>(value) : out("is out of range");
    }
    if (!json.is_number()) return out(json.is_null() ? "is missing" : "is no number");
    const auto value = json.get<double>();
    const bool fits = value >= 0 && value <= static_cast<double>(most);
    if (!fits) return out("is out of range");
    return static_cast<std::uint64_t>(value);
  }
  static base::Json fieldOf(const base::Json& json, const char* key) {
    const auto at = json.find(key);
    return at == json.end() ? base::Json() : *at;
  }

  Result<TraceRequest> requestOf(std::string_view line) const {
    const auto json = base::parseJson(line);
    if (!json) return wrong(json.error().detail, "write one JSON object in each line");
    if (!json->is_object()) return wrong("no JSON object", "write one JSON object in each line");
    TraceRequest out;
    VIADUCT_TRY(out.timestamp, numberOf(fieldOf(*json, "timestamp"), "timestamp", kMostTime));
    VIADUCT_TRY(const auto input,
                numberOf(fieldOf(*json, "input_length"), "input_length", kMostLength));
    VIADUCT_TRY(const auto output,
                numberOf(fieldOf(*json, "output_length"), "output_length", kMostLength));
    out.input_length = static_cast<std::uint32_t>(input);
    out.output_length = static_cast<std::uint32_t>(output);
    const base::Json ids = fieldOf(*json, "hash_ids");
    if (!ids.is_array()) return wrong("hash_ids is no list", "give one id for each 512 tokens");
    std::unordered_set<std::uint64_t> seen;
    for (const base::Json& id : ids) {
      VIADUCT_TRY(const auto number,
                  numberOf(id, "hash_ids", std::numeric_limits<std::uint64_t>::max()));
      if (!seen.insert(number).second)
        return wrong(fmt::format("hash_ids has {} twice", number), "name each block once");
      out.hash_ids.push_back(number);
    }
    const std::uint64_t wanted = (input + kHashTokens - 1) / kHashTokens;
    if (input == 0) return wrong("input_length is 0", "leave the request out");
    if (out.hash_ids.size() != wanted)
      return wrong(fmt::format("{} hash ids for {} tokens", out.hash_ids.size(), input),
                   fmt::format("give one for each {} tokens: {}", kHashTokens, wanted));
    return out;
  }

  const std::string& name_;
  std::size_t line_ = 0;
};

}  // namespace

Result<Trace> parseTrace(std::string_view text, const std::string& name) {
  return TraceParser(name).parse(text);
}

Result<Trace> readTrace(const std::string& file) {
  const base::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return base::fileError(kReadTrace, errno, file);
  std::string text;
  if (const int error = base::readAll(fd.get(), text, kLargestTrace); error != 0)
    return base::fileError(kReadTrace, error, file);
  if (text.size() <= kLargestTrace) return parseTrace(text, file);
  return Error{.code = Code::kInvalid,
               .operation = kReadTrace,
               .detail = "larger than " + base::showSize(kLargestTrace),
               .file = file};
}

std::string textOf(const Trace& trace) {
  std::string out;
  for (const TraceRequest& one : trace)
    out += fmt::format(
        R"({{"timestamp": {}, "input_length": {}, "output_length": {}, "hash_ids": [{}]}})"
        "\n",
        one.timestamp, one.input_length, one.output_length, fmt::join(one.hash_ids, ", "));
  return out;
}

TraceStatistics statisticsOf(const Trace& trace) {
  TraceStatistics out{.requests = trace.size()};
  if (trace.empty()) return out;
  std::vector<std::uint32_t> inputs;
  std::unordered_set<std::uint64_t> cached;
  std::uint64_t hits = 0;
  for (const TraceRequest& one : trace) {
    inputs.push_back(one.input_length);
    out.input_mean += one.input_length;
    out.output_mean += one.output_length;
    bool prefix = true;
    for (const std::uint64_t id : one.hash_ids) {
      prefix = prefix && cached.contains(id);
      hits += prefix ? 1 : 0;
    }
    cached.insert(one.hash_ids.begin(), one.hash_ids.end());
    out.hash_ids += one.hash_ids.size();
  }
  const auto count = static_cast<double>(trace.size());
  std::ranges::sort(inputs);
  const auto quantile = [&](double q) {
    return inputs[std::min(inputs.size() - 1, static_cast<std::size_t>(q * count))];
  };
  out.input_mean /= count;
  out.output_mean /= count;
  out.input_p50 = quantile(0.5);
  out.input_p90 = quantile(0.9);
  out.input_p99 = quantile(0.99);
  out.input_max = inputs.back();
  out.unique = cached.size();
  out.prefix_hits = static_cast<double>(hits) / static_cast<double>(out.hash_ids);
  out.seconds = static_cast<double>(trace.back().timestamp - trace.front().timestamp) * 1e-3;
  if (out.seconds > 0) out.requests_per_s = count / out.seconds;
  return out;
}

}  // namespace viaduct::measure
