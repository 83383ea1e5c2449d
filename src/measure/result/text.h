// Parts of a row, and numbers of things, in words, the same in every output. Threads: pure
// functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "measure/result/row.h"

namespace viaduct::measure {

// Three digits that mean something: "0.0123", "1.25", "12.5", "125", "12500"; "-" of nothing.
std::string digits(std::optional<double> value);
// "1 row", "2 rows".
std::string counted(std::size_t count, std::string_view one);
// The text in lines of at most 80 columns that start with `indent` spaces, broken between words if
// possible.
std::string wrapped(std::string text, std::size_t indent);
// How the bytes went, on which devices, and whether that was proven: "tcp/socket on eth0, proven";
// empty when it is not known.
std::string pathWords(const Row& row);
// What part of the transfers could have been skipped unseen: "<10%", "none", "-".
std::string skipsWords(const Row& row);
// "INVALID", "SILENT-RAIL": what must not be overlooked.
std::string loudName(Verdict verdict);

}  // namespace viaduct::measure
