// Converts a single row to JSON and back, for tests.
#pragma once

#include <string>
#include <string_view>

#include "measure/result/row_json.h"

namespace viaduct::measure {

inline std::string toJson(const Row& row) { return base::dumpJson(JsonWriter::of(row), -1); }

inline Result<Row> rowFromJson(std::string_view text) {
  VIADUCT_TRY(const Json json, base::parseJson(text));
  if (!json.is_object())
    return Error{.code = Code::kProtocol, .operation = "result row", .detail = "not a JSON object"};
  JsonReader from(json);
  Row row;
  describe(from, row);
  VIADUCT_CHECK(from.status("result row", {}));
  return row;
}

}  // namespace viaduct::measure
