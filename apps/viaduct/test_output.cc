#include "viaduct/test_output.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/environment.h"

namespace viaduct::app {
namespace {

bool runsAtGithub() {
  const char* const value = base::variable("GITHUB_ACTIONS");
  return value != nullptr && std::string_view(value) == "true";
}

}  // namespace

Result<TestOutput> TestOutput::open(std::string suite, const std::string& junit) {
  VIADUCT_TRY(ResultsFile file, ResultsFile::open(junit, "--junit"));
  return TestOutput(std::move(suite), std::move(file));
}

Status TestOutput::tell(const std::vector<measure::RowTest>& tests, std::FILE* to) {
  if (runsAtGithub()) fmt::print(to, "{}", measure::annotationText(suite_, tests));
  std::fflush(to);
  return file_.write(measure::junitText(suite_, tests));
}

}  // namespace viaduct::app
