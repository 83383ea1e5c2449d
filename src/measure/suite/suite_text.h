// A suite as text for a terminal. Threads: pure functions.
#pragma once

#include <string>

#include "measure/suite/answers.h"

namespace viaduct::measure {

// Who measured what, a table for each test, and what they say.
std::string suiteText(const Suite& suite);

// Parts of it that other outputs have too. "+12.3 %", "-0.4 %", "-" of nothing.
std::string percentText(const std::optional<double>& part);
std::string intervalText(const std::optional<Improvement>& improvement);  // "+9.1 to +14.2 %"
std::string settingsText(const SuiteTest& test);  // "VIADUCT_INJECT=on VIADUCT_DOORBELL=off"
// How many of the answers chance alone makes "helps" or "hurts"; nothing where there are none.
std::string chanceText(const std::vector<SuiteAnswers>& answers);

}  // namespace viaduct::measure
