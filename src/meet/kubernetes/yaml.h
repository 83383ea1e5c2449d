// The part of YAML in which kubectl writes its configuration: blocks of mappings and lists, and
// scalars in one line, plain or quoted. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <string_view>

#include "base/json.h"

namespace viaduct::meet::kubernetes {

// Reads a text of YAML, or of JSON. Scalars are texts, besides true, false and null. An error has
// the line of anything else, such as anchors, tags and texts of several lines.
Result<base::Json> parseYaml(std::string_view text);

}  // namespace viaduct::meet::kubernetes
