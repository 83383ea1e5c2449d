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

// Splits a line at its commas. A field in quotes may contain commas, and "" stands for a
// quote. A quoted field must end in the same line.
Result<std::vector<std::string>> csvFieldsOf(std::string_view line);

class TraceFields {
 public:
  // The arguments must outlive this object.
  explicit TraceFields(const base::Json& object) : object_(&object) {}
  TraceFields(const std::vector<std::string>& names, const std::vector<std::string>& row)
      : names_(&names), row_(&row) {}

  // True if the line has this name, with any value. The names of a CSV row are case-insensitive.
  bool has(std::string_view name) const;

  // Returns a whole number, which may be written as 27.0. Errors here and below only have detail
  // and remedy.
  Result<std::uint64_t> whole(std::string_view name, std::uint64_t most) const;
  // Reads a time in units of `unit_us` microseconds. Returns microseconds.
  Result<std::uint64_t> time(std::string_view name, double unit_us) const;
  Result<std::uint64_t> dateTime(std::string_view name) const;
  // Returns a list of whole numbers. Only a JSON object can have a list.
  Result<std::vector<std::uint64_t>> list(std::string_view name) const;
  // Returns a number for a value of any type. Equal values have equal numbers. A missing value, a
  // list, an object, true and false have 0.
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
