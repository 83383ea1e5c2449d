#include "measure/report/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace viaduct::measure {
namespace {

void addDifferences(const std::string& front, const std::vector<Option>& kept,
                    const std::vector<Option>& wanted, std::vector<std::string>& out) {
  const auto value_in = [](const std::vector<Option>& options, const std::string& name) {
    const std::string* value = valueOf(options, name);
    return value == nullptr ? std::string("not there") : *value;
  };
  std::vector<Option> all = kept;
  for (const Option& one : wanted)
    if (valueOf(kept, one.name) == nullptr) all.push_back(one);
  for (const Option& one : all) {
    const std::string before = value_in(kept, one.name), now = value_in(wanted, one.name);
    if (before != now)
      out.push_back(fmt::format("{}{}: \"{}\" there, \"{}\" now", front, one.name, before, now));
  }
}

std::string named(const std::vector<SuiteTest>& tests) {
  std::string out;
  for (const SuiteTest& test : tests) out += (out.empty() ? "" : ",") + test.name;
  return out;
}

// Returns a test as options, so that two tests are compared by the same code as options.
std::vector<Option> optionsOf(const SuiteTest& test) {
  std::vector<Option> out = test.settings;
  std::string sizes;
  for (const std::uint64_t size : test.sizes)
    sizes += fmt::format("{}{}", sizes.empty() ? "" : ",", size);
  out.push_back({"sizes", sizes});
  if (!test.absent.empty()) out.push_back({"not measured", test.absent});
  return out;
}

}  // namespace

std::vector<std::size_t> measuredTests(const Suite& suite) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < suite.tests.size(); ++i)
    if (suite.tests[i].absent.empty()) out.push_back(i);
  return out;
}

std::uint64_t sizeOf(const Row& row) { return row.block_size * row.batch_size; }

std::vector<std::string> differencesOf(const Suite& kept, const Suite& wanted) {
  std::vector<std::string> out;
  addDifferences("", {{"version", kept.version}}, {{"version", wanted.version}}, out);
  addDifferences("", kept.settings, wanted.settings, out);
  addDifferences("agent.", kept.agent, wanted.agent, out);
  addDifferences("", {{"tests", named(kept.tests)}}, {{"tests", named(wanted.tests)}}, out);
  if (!out.empty() && named(kept.tests) != named(wanted.tests)) return out;
  for (std::size_t i = 0; i < kept.tests.size(); ++i)
    addDifferences(kept.tests[i].name + ": ", optionsOf(kept.tests[i]), optionsOf(wanted.tests[i]),
                   out);
  return out;
}

}  // namespace viaduct::measure
