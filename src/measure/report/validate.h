// Finds the fields of a result that contradict one another. Figures are computed again from their
// counts, with the rules of the run (row_figures.h). Threads: pure functions over plain values.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <vector>

#include "measure/report/suite.h"
#include "measure/result/report.h"

namespace viaduct::measure {

struct Contradiction {
  std::string field = {};  // "rows[3].gb_per_s"
  std::string text = {};   // "is 968.2, but 19.36 follows: ..."
};
std::vector<Contradiction> contradictionsIn(const Report& report);
std::vector<Contradiction> contradictionsIn(const Suite& suite);

// Fails if a result contradicts itself. The error names the file and the first contradictions.
Status checkResult(const std::vector<Report>& reports, const std::string& file);
Status checkResult(const Suite& suite, const std::string& file);

// A check of a field, as text for people. validationRules() returns all checks.
struct ValidationRule {
  std::string field = {};  // "gb_per_s"
  std::string rule = {};
};
std::vector<ValidationRule> validationRules();

}  // namespace viaduct::measure
