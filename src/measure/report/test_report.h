// The rows of a comparison or a suite as tests that pass or fail, for systems that run them: a
// JUnit file, and the annotations of GitHub. Threads: pure functions over plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/report/compare.h"
#include "measure/report/suite.h"

namespace viaduct::measure {

enum class TestEnd : std::uint8_t {
  kPassed,
  kSkipped,  // not measured
  kUnsure,   // noise or missing runs hide the answer: skipped in JUnit, a warning at GitHub
  kFailed,
};

struct RowTest {
  std::string name = {};
  TestEnd end = TestEnd::kPassed;
  std::string text = {};  // the measured figures, or the reason
};

// A row's test fails if the row is too slow in B, or is valid in A but not in B.
std::vector<RowTest> testsOf(const Comparison& comparison);
// A test fails at a size if one of its rows is not valid.
std::vector<RowTest> testsOf(const Suite& suite);

// `suite` names the command: "viaduct compare".
std::string junitText(const std::string& suite, const std::vector<RowTest>& tests);
// One line for each test that failed or is unsure.
std::string annotationText(const std::string& suite, const std::vector<RowTest>& tests);

}  // namespace viaduct::measure
