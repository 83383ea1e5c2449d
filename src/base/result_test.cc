#include <gtest/gtest.h>
#include <viaduct/result.h>

#include <csignal>
#include <string>

namespace viaduct {
namespace {

Result<int> missing() {
  return Error{.code = Code::kNotFound, .operation = "find kv", .remedy = "look at the name"};
}

TEST(Result, GivesItsValueOrItsError) {
  Result<std::string> there = std::string("here");
  ASSERT_TRUE(there);
  EXPECT_EQ(*there, "here");
  EXPECT_EQ(there->size(), 4U);
  EXPECT_EQ(std::move(there).value(), "here");
  EXPECT_EQ(missing().error().code, Code::kNotFound);
}

// The process aborts in release and debug builds. An assertion would not print the error's text,
// and NDEBUG would remove it.
TEST(ResultDeath, ReadingTheValueOfAnErrorPrintsTheErrorAndAborts) {
  const auto aborts = ::testing::KilledBySignal(SIGABRT);
  const char* const text = "holds an error: find kv: not found; what to do: look at the name";
  EXPECT_EXIT(static_cast<void>(missing().value()), aborts, text);
  EXPECT_EXIT(static_cast<void>(*missing()), aborts, text);
  const Result<int> kept = missing();
  EXPECT_EXIT(static_cast<void>(kept.value()), aborts, text);
  const Result<std::string> named = Error{.operation = "name"};
  EXPECT_EXIT(static_cast<void>(named->size()), aborts, "holds an error: name: invalid");
}

TEST(ResultDeath, ReadingTheErrorOfAValueAborts) {
  const Result<int> seven = 7;
  EXPECT_EXIT(static_cast<void>(seven.error()), ::testing::KilledBySignal(SIGABRT),
              "error of a Result was read, but it holds a value");
}

}  // namespace
}  // namespace viaduct
