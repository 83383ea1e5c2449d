// Prints a suite as text for a terminal. Threads: pure functions.
#pragma once

#include <string>

#include "measure/report/suite_answers.h"

namespace viaduct::measure {

// Returns the machines and commands, a table for each test, and the answers. The tables have at
// most `width` columns, if the figures allow.
std::string suiteText(const Suite& suite, std::size_t width);

// Texts that other outputs use too. percentText(): "+12.3 %", "-0.4 %", or "-" for no value.
std::string percentText(const std::optional<double>& part);
std::string intervalText(const std::optional<Improvement>& improvement);  // "+9.1 to +14.2 %"
std::string settingsText(const SuiteTest& test);  // "VIADUCT_INJECT=on VIADUCT_DOORBELL=off"
// Says how many answers may be wrong by chance alone. Empty if no answer has an interval.
std::string chanceText(const std::vector<SuiteAnswers>& answers);

}  // namespace viaduct::measure
