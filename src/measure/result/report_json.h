// Parts of result files that several kinds of them have, as JSON. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "measure/result/report.h"

namespace viaduct::measure {

using base::dumpJson;
using base::Json;
using base::JsonReader;
using base::JsonWriter;
using base::parseJson;

// What a file says that it is: "viaduct-bench/2".
struct FormatName {
  std::string_view front = {};  // up to the slash
  std::uint64_t version = 1;    // changes when a field changes its meaning
  std::string_view writer = {};
};
// A file of that format.
std::string fileText(const FormatName& format, const Json& content);
// The text of a file of that format; an error names the file and what was being done, `reading`.
Result<Json> parseFile(std::string_view text, const std::string& file, const char* reading,
                       const FormatName& name);

// What a run was asked for, and in one of its fields the settings of its agents.
template <class List>
struct AllOptions {
  List& run;
  List& agent;
};
template <class List>
void describe(auto& json, const AllOptions<List>& options) {
  json.plain(options.run);
  json.keep("agent", options.agent);
}

void describe(JsonWriter& to, const Environment& environment);
void describe(JsonReader& from, Environment& environment);

}  // namespace viaduct::measure
