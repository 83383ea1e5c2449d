#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "diag/explain/known_texts_page.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

// docs/explain.md ends with the tables that the code generates.
TEST(ExplainPage, ItsTablesAreCurrent) {
  constexpr std::string_view kMark = "<!-- Generated: ";
  const std::string file = std::string(kSourceDir) + "/docs/explain.md";
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  std::string page = text.str();
  const auto begin = page.find('\n', page.find(kMark));
  ASSERT_NE(begin, std::string::npos);
  const std::string tables = "\n\n" + diag::knownTextsPage();
  if (std::getenv("VIADUCT_WRITE_PAGES") != nullptr) {
    page.replace(begin, std::string::npos, tables);
    std::ofstream(file) << page;
  }
  EXPECT_EQ(page.substr(begin), tables)
      << "VIADUCT_WRITE_PAGES=1 app_test --gtest_filter='ExplainPage.*'";
}

}  // namespace
}  // namespace viaduct::testing
