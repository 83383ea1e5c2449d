#include "measure/workload/trace_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "measure/workload/date_time.h"

namespace viaduct::measure {
namespace {

// Up to this time (71 years), seconds and milliseconds in a double are exact to the microsecond.
constexpr std::uint64_t kMostMicroseconds = std::uint64_t{1} << 51U;  // microseconds
constexpr std::size_t kMostColumns = 256;

Error wrong(std::string detail, std::string remedy) {
  return {.code = Code::kInvalid, .detail = std::move(detail), .remedy = std::move(remedy)};
}

// Reads the field at the start of `rest`, and removes it and its comma.
Result<std::string> takeField(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  if (!rest.starts_with('"')) {
    const auto end = std::min(rest.find(','), rest.size());
    std::string out(base::trimmed(rest.substr(0, end)));
    rest.remove_prefix(end);
    return out;
  }
  std::string out;
  for (;;) {
    rest.remove_prefix(1);
    const auto end = rest.find('"');
    if (end == std::string_view::npos)
      return wrong("a quoted field has no end", "write each request in one line");
    out += rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (!rest.starts_with('"')) break;
    out += '"';
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  if (rest.empty() || rest.front() == ',') return out;
  return wrong("text stands behind a quoted field", "write \"\" for a quote in a field");
}

}  // namespace

Result<std::vector<std::string>> csvFieldsOf(std::string_view line) {
  std::vector<std::string> out;
  for (;;) {
    VIADUCT_TRY(std::string field, takeField(line));
    out.push_back(std::move(field));
    if (line.empty()) return out;
    line.remove_prefix(1);
    if (out.size() == kMostColumns)
      return wrong(fmt::format("more than {} columns", kMostColumns), "leave unused columns out");
  }
}

bool TraceFields::has(std::string_view name) const {
  if (object_ != nullptr) return object_->contains(name);
  return std::ranges::any_of(*names_,
                             [&](const std::string& one) { return base::sameWord(one, name); });
}

TraceFields::Value TraceFields::valueOf(const base::Json& json) {
  if (json.is_null()) return Missing{};
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return std::string_view(json.get_ref<const std::string&>());
  return Other{};
}

TraceFields::Value TraceFields::valueOf(std::string_view field) {
  if (field.empty()) return Missing{};
  if (const auto whole = base::numberIn<std::uint64_t>(field)) return *whole;
  if (const auto number = base::numberIn<double>(field)) return *number;
  return field;
}

TraceFields::Value TraceFields::find(std::string_view name) const {
  if (object_ != nullptr) {
    const auto at = object_->find(name);
    return at == object_->end() ? Missing{} : valueOf(*at);
  }
  for (std::size_t i = 0; i < std::min(names_->size(), row_->size()); ++i)
    if (base::sameWord((*names_)[i], name)) return valueOf(std::string_view((*row_)[i]));
  return Missing{};
}

Result<std::uint64_t> TraceFields::wholeIn(const Value& value, std::string_view name,
                                           std::uint64_t most) {
  const auto out = [&](const char* why) {
    return wrong(fmt::format("{} {}", name, why),
                 fmt::format("write \"{}\" as a whole number from 0 to {}", name, most));
  };
  if (std::holds_alternative<Missing>(value)) return out("is missing");
  if (const auto* whole = std::get_if<std::uint64_t>(&value))
    return *whole <= most ? Result<std::uint64_t>(*whole) : out("is out of range");
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr) return out("is no number");
  // 2^64, the first double above the largest 64-bit number, is out of range.
  if (!(*number >= 0 && *number < std::ldexp(1.0, 64))) return out("is out of range");
  if (*number != std::floor(*number)) return out("is no whole number");
  const auto rounded = static_cast<std::uint64_t>(*number);
  return rounded <= most ? Result<std::uint64_t>(rounded) : out("is out of range");
}

Result<std::uint64_t> TraceFields::whole(std::string_view name, std::uint64_t most) const {
  return wholeIn(find(name), name, most);
}

Result<std::uint64_t> TraceFields::time(std::string_view name, double unit_us) const {
  const Value value = find(name);
  const double most = static_cast<double>(kMostMicroseconds) / unit_us;
  const auto out = [&](const char* why) {
    return wrong(fmt::format("{} {}", name, why),
                 fmt::format("write \"{}\" as a number from 0 to {:.0f}", name, most));
  };
  if (std::holds_alternative<Missing>(value)) return out("is missing");
  const auto* whole = std::get_if<std::uint64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  if (whole == nullptr && number == nullptr) return out("is no number");
  const double given = whole != nullptr ? static_cast<double>(*whole) : *number;
  if (!(given >= 0 && given <= most)) return out("is out of range");
  return static_cast<std::uint64_t>(std::llround(given * unit_us));
}

Result<std::uint64_t> TraceFields::dateTime(std::string_view name) const {
  const auto out = [&](const std::string& why) {
    return wrong(fmt::format("{} {}", name, why),
                 "write it as 2023-11-16 18:17:03.97, with a zone such as +00:00 if it is not UTC");
  };
  const Value value = find(name);
  if (std::holds_alternative<Missing>(value)) return out("is missing");
  const auto* text = std::get_if<std::string_view>(&value);
  if (text == nullptr) return out("is no date");
  const auto time = microsecondsIn(*text);
  if (!time) return out("is no date with a time from 1970 on");
  return *time;
}

Result<std::vector<std::uint64_t>> TraceFields::list(std::string_view name) const {
  std::vector<std::uint64_t> out;
  const auto at = object_->find(name);
  if (at == object_->end() || !at->is_array())
    return wrong(fmt::format("{} is no list", name), "write it as [1, 2, 3], or leave it out");
  out.reserve(at->size());
  for (const base::Json& one : *at) {
    VIADUCT_TRY(const std::uint64_t id,
                wholeIn(valueOf(one), name, std::numeric_limits<std::uint64_t>::max()));
    out.push_back(id);
  }
  return out;
}

std::uint64_t TraceFields::identity(std::string_view name) const {
  return std::visit(
      [](const auto& value) -> std::uint64_t {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Missing> || std::is_same_v<T, Other>)
          return 0;
        else
          return std::hash<T>()(value);
      },
      find(name));
}

}  // namespace viaduct::measure
