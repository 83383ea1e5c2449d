// Rules between the fields of one row. The figures of a row have rules of their own: row_figures.h.
// Threads: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "measure/result/row.h"

namespace viaduct::measure {

struct RowCheck {
  const char* fields;  // the checked fields, as in docs/results.md
  const char* rule;
  // Returns the values that disagree, as text, or nothing. Only called for rows with counts.
  std::optional<std::string> (*find)(const Row& row);
};
std::span<const RowCheck> rowChecks();

// True if the numbers are equal but for rounding. Files have all digits, but another compiler may
// round the last digit differently.
bool areNear(double a, double b, double tolerance = 1e-9);

}  // namespace viaduct::measure
