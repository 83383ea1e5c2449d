// Reads and writes a row within a larger JSON text. docs/results.md has its fields. Threads: pure
// functions.
#pragma once

#include "base/json.h"
#include "measure/result/row.h"

namespace viaduct::measure {

using base::Json;
using base::JsonReader;
using base::JsonWriter;

void describe(JsonWriter& to, const Row& row);
void describe(JsonReader& from, Row& row);

}  // namespace viaduct::measure
