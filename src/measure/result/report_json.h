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
using base::parseJson;

// What a file says that it is: "viaduct-bench/2".
struct FormatName {
  std::string_view front = {};  // up to the slash
  std::uint64_t version = 1;    // changes when a field changes its meaning
  std::string_view writer = {};
};
std::string textOf(const FormatName& name);
// The text of a file of that format; an error names the file and what was being done, `reading`.
Result<Json> parseFile(std::string_view text, const std::string& file, const char* reading,
                       const FormatName& name);

struct OptionList {
  std::vector<Option> list;
};

Json asJson(const Environment& environment);
Json asJson(const std::vector<Option>& options);
void read(JsonReader& from, Environment& environment);
void read(JsonReader& from, OptionList& options);

}  // namespace viaduct::measure
