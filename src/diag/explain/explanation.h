// Explains the known texts of a log, as text and as JSON. Threads: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "diag/explain/log_reader.h"

namespace viaduct::diag {

using base::Json;

// The doctor's answer for one finding on this node.
enum class OnNode : std::uint8_t { kFound, kNotTheCase, kNotLooked };
// Maps a finding's code to that answer. An empty function: the log is of another node.
using NodeRelation = std::function<OnNode(std::string_view finding)>;

// Returns text of at most 80 columns. Causes that hold on this node come first, and refuted causes
// last.
std::string explanationText(const LogSummary& summary, const NodeRelation& relation = {});
// JSON with "format": "viaduct-explain/1".
Json explanationJson(const LogSummary& summary, const NodeRelation& relation = {});

}  // namespace viaduct::diag
