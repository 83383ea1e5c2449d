// A row inside a larger JSON text. Threads: pure functions.
#pragma once

#include "measure/result/json_read.h"
#include "measure/result/row.h"

namespace viaduct::measure {

Json asJson(const Row& row);
void read(JsonReader& from, Row& row);

}  // namespace viaduct::measure
