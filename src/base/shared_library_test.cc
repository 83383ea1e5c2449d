#include "base/shared_library.h"

#include <gtest/gtest.h>

namespace viaduct::base {
namespace {

TEST(SharedLibrary, GivesTheFunctionsThatItHas) {
  const auto math = SharedLibrary::open("libm.so.6");
  ASSERT_TRUE(math) << math.error().text();
  double (*root)(double) = nullptr;
  ASSERT_TRUE(math->bind("sqrt", root));
  EXPECT_EQ(root(9.0), 3.0);
}

TEST(SharedLibrary, ThisProgramHasALoader) { EXPECT_TRUE(loadsLibraries()); }

TEST(SharedLibrary, AMissingFunctionIsReported) {
  const auto math = SharedLibrary::open("libm.so.6");
  ASSERT_TRUE(math) << math.error().text();
  double (*root)(double) = nullptr;
  ASSERT_TRUE(math->bind("sqrt", root));
  EXPECT_FALSE(math->bind("root_of_all_evil", root));
  EXPECT_EQ(root, nullptr);
}

TEST(SharedLibrary, AMissingLibraryIsAnErrorWithTheLoadersText) {
  const auto nobody = SharedLibrary::open("libnobody_has_this.so.7");
  ASSERT_FALSE(nobody);
  const Error& why = nobody.error();
  EXPECT_EQ(why.code, Code::kUnsupported);
  EXPECT_EQ(why.operation, "load libnobody_has_this.so.7");
  EXPECT_NE(why.detail.find("libnobody_has_this.so.7: "), std::string::npos) << why.detail;
}

}  // namespace
}  // namespace viaduct::base
