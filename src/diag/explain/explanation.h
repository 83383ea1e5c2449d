// What the known texts of a log mean, as text and as JSON. Threads: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "diag/explain/log_reader.h"

namespace viaduct::diag {

using base::Json;

// What the doctor says about one of its findings on this node.
enum class OnNode : std::uint8_t { kFound, kNotTheCase, kNotLooked };
// By the code of the finding. An empty function: the log is of another node.
using NodeRelation = std::function<OnNode(std::string_view finding)>;

// At most 80 columns. Causes that hold on this node come first, those that do not come last.
std::string explanationText(const LogSummary& summary, const NodeRelation& relation = {});
// "format": "viaduct-explain/1".
Json explanationJson(const LogSummary& summary, const NodeRelation& relation = {});

}  // namespace viaduct::diag
