// A row inside a larger JSON text. Threads: pure functions.
#pragma once

#include "base/json.h"
#include "measure/result/row.h"

namespace viaduct::measure {

using base::Json;
using base::JsonReader;

Json asJson(const Row& row);
void read(JsonReader& from, Row& row);

}  // namespace viaduct::measure
