// Formats parts of a row, and counts, in the same way for every output. Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/result/row.h"

namespace viaduct::measure {

// Rounds to three significant digits: "0.0123", "1.25", "12.5", "125", "12500"; "-" for no value.
std::string digits(std::optional<double> value);
// Returns the text with `to` in the place of each `from`.
std::string replaceAll(std::string text, std::string_view from, std::string_view to);
// Returns the lines without their line breaks. No line follows a line break at the end.
std::vector<std::string_view> linesOf(std::string_view text);
// "1 row", "2 rows".
std::string counted(std::size_t count, std::string_view one);
// Breaks a text into lines of at most 80 columns with an indent of `indent` spaces. Breaks between
// words if possible.
std::string wrapped(std::string text, std::size_t indent);
// Wraps and indents a note that stands below a row of a table.
std::string note(std::string text);
// "2 of 8 rows unproven: WHY", with the reason of the first one. Empty if no row is unproven.
std::string unprovenWords(std::span<const Row> rows);
// "12%" for 0.12; "-" for no value.
std::string percent(std::optional<double> part);
// Returns the reached percentage of the ceiling; "-" for no ceiling.
std::string ofMax(const std::optional<Ceiling>& ceiling);
// Joins the words of a row's shares, each once, by `separator`. Puts "-> host ->" between the words
// of two stages of a staged path.
std::string stagesWords(const Row& row, std::string_view separator,
                        const std::function<std::string(const ProvenShare&)>& words);
// Returns a row's ways and devices, and whether they are proven: "tcp/socket on eth0, proven".
// Empty if the path is unknown.
std::string pathWords(const Row& row);
// Returns which part of the transfers could have been skipped unnoticed: "<10%", "none", or "-" if
// nothing was checked.
std::string skipsWords(const Row& row);
// Returns a line for each device of a row with several GPUs, and one about their sum.
std::vector<std::string> deviceLines(const Row& row);
// Returns the verdict in capitals, such as "INVALID" or "SILENT-RAIL".
std::string loudName(Verdict verdict);

}  // namespace viaduct::measure
