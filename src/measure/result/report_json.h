// Parts of result files that several formats share, as JSON. Threads: pure functions.
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

// The name of a format in a file: "viaduct-bench/1".
struct FormatName {
  std::string_view front = {};  // up to the slash
  std::uint64_t version = 1;    // changes when a field changes its meaning
  std::string_view writer = {};
  std::string text() const;
};
// Returns the name of the format, with its version, from a JSON text. Empty for other texts.
std::string formatIn(std::string_view text);
// True if the text is JSON of this format, of any version.
bool hasFormat(std::string_view text, const FormatName& format);
// Returns the text of a file in that format.
std::string fileText(const FormatName& format, const Json& content);
// Parses a file in that format. An error names the file and the operation `reading`.
Result<Json> parseFile(std::string_view text, const std::string& file, const char* reading,
                       const FormatName& name);

// The options of a run as the fields of an object. The agents' settings are its field "agent".
template <class List>
struct AllOptions {
  List& run;
  List& agent;
};
template <class List>
AllOptions(List&, List&) -> AllOptions<List>;
template <class List>
void describe(auto& json, const AllOptions<List>& options) {
  json.plain(options.run);
  json.keep("agent", options.agent);
}

void describe(JsonWriter& to, const Environment& environment);
void describe(JsonReader& from, Environment& environment);

}  // namespace viaduct::measure
