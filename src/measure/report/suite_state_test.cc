#include "measure/report/suite_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "measure/report/suite_testing.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

namespace fs = std::filesystem;

using testing::has;

class SuiteFileTest : public ::testing::Test {
 protected:
  SuiteFileTest()
      : folder_(::testing::TempDir() + "viaduct_suite_" + std::to_string(::getpid()) + "/"),
        file_(folder_ + "suite.json") {
    fs::create_directories(folder_);
  }
  ~SuiteFileTest() override { fs::remove_all(folder_); }
  void put(const std::string& text) const { std::ofstream(file_) << text; }
  std::string content() const {
    std::ostringstream out;
    out << std::ifstream(file_).rdbuf();
    return out.str();
  }
  std::string refusal(bool fresh = false) const {
    const auto opened = SuiteFile::open(file_, fresh);
    return opened ? "" : opened.error().text();
  }
  std::string folder_, file_;
};

TEST_F(SuiteFileTest, RoundsAreKeptAndFoundAgain) {
  const auto file = SuiteFile::open(file_, false);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_FALSE(file->kept());
  EXPECT_FALSE(fs::exists(file_)) << "nothing is written before anything is measured";
  ASSERT_TRUE(file->write(someSuite(2)));
  const auto again = SuiteFile::open(file_, false);
  ASSERT_TRUE(again) << again.error().text();
  ASSERT_TRUE(again->kept());
  EXPECT_EQ(*again->kept(), someSuite(2));
  EXPECT_FALSE(fs::exists(file_ + ".part"));
  EXPECT_FALSE(SuiteFile::open(file_, true)->kept()) << "fresh";
}

TEST_F(SuiteFileTest, ALinkStaysALink) {
  const std::string link = folder_ + "link.json";
  fs::create_symlink(file_, link);
  const auto file = SuiteFile::open(link, false);
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_TRUE(file->write(someSuite(1)));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(has(content(), "viaduct-suite/1"));
}

TEST_F(SuiteFileTest, TheOldContentStaysUntilTheNewIsComplete) {
  put(toJson(someSuite(1)));
  const auto file = SuiteFile::open(file_, false);
  ASSERT_TRUE(file);
  // The folder has another name for a moment, so that writing fails.
  const std::string moved = folder_.substr(0, folder_.size() - 1) + "_moved";
  fs::rename(folder_, moved);
  const auto written = file->write(someSuite(2));
  fs::rename(moved, folder_);
  ASSERT_FALSE(written);
  EXPECT_TRUE(has(written.error().text(), "suite.json")) << written.error().text();
  EXPECT_EQ(content(), toJson(someSuite(1)));
}

TEST_F(SuiteFileTest, AnUnwritableFileIsReportedAtOnce) {
  EXPECT_TRUE(has(SuiteFile::open("/no/such/folder/x.json", false).error().text(),
                  "/no/such/folder/x.json"));
  for (const char* name : {"/dev/null", "/tmp"})
    EXPECT_TRUE(has(SuiteFile::open(name, false).error().text(), "not a regular file")) << name;
  EXPECT_TRUE(SuiteFile::open("", false)) << "none is asked for";
}

TEST_F(SuiteFileTest, AFileThatIsNoSuiteIsNotOverwritten) {
  for (const char* text : {"notes", "{\"format\": \"viaduct-bench/1\"}", "[1]"}) {
    put(text);
    EXPECT_TRUE(has(refusal(), "the file holds no suite rounds")) << refusal();
    EXPECT_TRUE(has(refusal(true), "no suite rounds")) << "fresh or not";
    EXPECT_EQ(content(), text);
  }
  put("{\"format\": \"viaduct-pipeline/1\"}");
  EXPECT_TRUE(has(refusal(), "no suite rounds: its format is viaduct-pipeline/1")) << refusal();
  put(" \n");
  EXPECT_EQ(refusal(), "") << "an empty file is nobody's";
}

TEST_F(SuiteFileTest, ANewerVersionIsNamedAndFreshReplacesIt) {
  put("{\"format\": \"viaduct-suite/2\"}");
  EXPECT_TRUE(has(refusal(), "its format is viaduct-suite/2")) << refusal();
  EXPECT_TRUE(has(refusal(), "or start again with --fresh")) << refusal();
  EXPECT_EQ(refusal(true), "");
}

TEST_F(SuiteFileTest, ContinuesOnlyWithTheSameSettings) {
  put(toJson(someSuite(2)));
  const auto file = SuiteFile::open(file_, false);
  ASSERT_TRUE(file);
  Suite wanted = someSuite(0);
  wanted.rounds = 7;
  wanted.least_effect = 0.05;
  const auto on = goOn(*file, wanted);
  ASSERT_TRUE(on) << on.error().text();
  EXPECT_EQ(on->rounds_done, 2U);
  EXPECT_EQ(on->rounds, 7U);
  EXPECT_EQ(on->runs.size(), 6U);
  EXPECT_EQ(on->least_effect, 0.05) << "what is asked for now";
  wanted.rounds = 1;
  EXPECT_EQ(goOn(*file, wanted)->rounds, 2U) << "what is done is done";
  wanted.settings[0].value = "tcp";
  const auto other = goOn(*file, wanted);
  ASSERT_FALSE(other);
  EXPECT_TRUE(has(other.error().text(), "backend: \"fake\" there, \"tcp\" now"))
      << other.error().text();
  EXPECT_TRUE(has(other.error().text(), "--fresh"));
}

TEST_F(SuiteFileTest, ContinuesOnlyAfterCompleteRounds) {
  Suite damaged = someSuite(2);
  damaged.rounds_done = 99;
  put(toJson(damaged));
  const auto file = SuiteFile::open(file_, false);
  ASSERT_TRUE(file);
  const auto on = goOn(*file, someSuite(0));
  ASSERT_FALSE(on);
  EXPECT_TRUE(has(on.error().text(), "the file has 6 runs, but 99 rounds need 297"))
      << on.error().text();
}

}  // namespace
}  // namespace viaduct::measure
