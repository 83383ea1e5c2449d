// The named values of one line of a trace: an object in JSON, or a row of comma-separated values.
// Threads: plain values and pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"

namespace viaduct::measure {

// Splits a line at its commas. A field in quotes may hold commas, and "" for a quote. A quoted
// field ends in its line.
Result<std::vector<std::string>> csvFieldsOf(std::string_view line);

class TraceFields {
 public:
  // Both have to outlive this.
  explicit TraceFields(const base::Json& object) : object_(&object) {}
  TraceFields(const std::vector<std::string>& names, const std::vector<std::string>& row)
      : names_(&names), row_(&row) {}

  // True if the line has this name, with any value. Large and small letters are the same in a row.
  bool has(std::string_view name) const;

  // The errors have the detail and the remedy. A whole number may be written as 27.0.
  Result<std::uint64_t> whole(std::string_view name, std::uint64_t most) const;
  // A time in units of so many microseconds, in microseconds.
  Result<std::uint64_t> time(std::string_view name, double unit_us) const;
  Result<std::uint64_t> dateTime(std::string_view name) const;
  // A list of whole numbers. Only an object has one.
  Result<std::vector<std::uint64_t>> list(std::string_view name) const;
  // A name of any kind, as a number. Equal names have equal numbers.
  std::uint64_t identity(std::string_view name) const;

 private:
  struct Missing {};
  struct Other {};  // a list, an object, or true or false
  using Value = std::variant<Missing, Other, std::uint64_t, double, std::string_view>;
  static Value valueOf(const base::Json& json);
  static Value valueOf(std::string_view field);
  Value find(std::string_view name) const;
  static Result<std::uint64_t> wholeIn(const Value& value, std::string_view name,
                                       std::uint64_t most);

  const base::Json* object_ = nullptr;
  const std::vector<std::string>*names_ = nullptr, *row_ = nullptr;
};

}  // namespace viaduct::measure
