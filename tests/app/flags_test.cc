#include "viaduct/flags.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "viaduct/ranks.h"

namespace viaduct::app {
namespace {

constexpr FlagName kKnown[] = {{"backend"}, {"num_iter"}, {"recreate_xfer", true}, {"op_type"}};

std::string read(const std::vector<std::string>& words) {
  const auto given = readFlags(words, kKnown);
  if (!given) return given.error().text();
  std::string out;
  for (const Given& one : *given) out += one.name + "=" + one.text + ";";
  return out;
}

TEST(Flags, EverySpellingOfGflagsIsTheSame) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--num_iter=5"},
                                                {"--num_iter", "5"},
                                                {"-num_iter", "5"},
                                                {"-num_iter=5"},
                                                {"--num-iter=5"},
                                                {"-num-iter", "5"}})
    EXPECT_EQ(read(words), "num_iter=5;");
}

TEST(Flags, YesAndNoHaveAllTheirSpellings) {
  EXPECT_EQ(read({"--recreate_xfer", "--num_iter", "5"}), "recreate_xfer=true;num_iter=5;");
  EXPECT_EQ(read({"--norecreate_xfer"}), "recreate_xfer=false;");
  EXPECT_EQ(read({"-norecreate-xfer"}), "recreate_xfer=false;");
  EXPECT_EQ(read({"--recreate_xfer", "false"}), "recreate_xfer=false;");
  for (const char* yes : {"1", "true", "yes", "y", "t", "TRUE"}) EXPECT_TRUE(*parseYesNo(yes));
  for (const char* no : {"0", "false", "no", "n", "f", "False"}) EXPECT_FALSE(*parseYesNo(no));
  EXPECT_FALSE(parseYesNo("maybe"));
}

TEST(Flags, AValueMayLookLikeAnything) {
  EXPECT_EQ(read({"--backend", "-x"}), "backend=-x;");
  EXPECT_EQ(read({"--backend=a=b"}), "backend=a=b;");
  EXPECT_EQ(read({"--backend="}), "backend=;");
}

TEST(Flags, WhatIsWrongIsNamed) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--num_itre", "5"}, "did you mean --num_iter?"},
      {{"--iter", "5"}, "did you mean --num_iter?"},
      {{"--colour"}, "--colour: invalid: there is no such flag"},
      {{"--nobackend"}, "there is no such flag"},
      {{"--num_iter"}, "--num_iter: invalid: a value is missing"},
      {{"5"}, "\"5\" is no flag"},
      {{"--"}, "\"--\" is no flag"},
      {{"--flagfile=x"}, "flags from other places are not read"},
      {{"--fromenv=num_iter"}, "flags from other places are not read"},
      {{"--tryfromenv", "x"}, "flags from other places are not read"},
  };
  for (const auto& [words, text] : cases)
    EXPECT_NE(read(words).find(text), std::string::npos) << read(words);
}

class FlagFile : public ::testing::Test {
 protected:
  FlagFile()
      : file_(::testing::TempDir() + "viaduct_flags_" + std::to_string(::getpid()) + ".toml") {}
  ~FlagFile() override { std::filesystem::remove(file_); }
  std::string readText(const std::string& text) {
    std::ofstream(file_) << text;
    const auto given = readFlagFile(file_, kKnown);
    if (!given) return given.error().text();
    std::string out;
    for (const Given& one : *given) out += one.name + "=" + one.text + ";";
    return out;
  }
  std::string file_;
};

TEST_F(FlagFile, HoldsTextsNumbersBooleansAndLists) {
  EXPECT_EQ(
      readText("# mine\nbackend = [\"local\", \"tcp\"]\nnum-iter = 5\nrecreate_xfer = true\n"),
      "backend=local,tcp;num_iter=5;recreate_xfer=true;");
}

TEST_F(FlagFile, AnUnknownKeyIsNamedWithItsLine) {
  const std::string text = readText("num_iter = 5\n\nnum_itre = 6\n");
  EXPECT_NE(text.find("line 3: unknown key \"num_itre\""), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean --num_iter?"), std::string::npos) << text;
}

TEST_F(FlagFile, ATableIsNoFlag) {
  const std::string text = readText("num_iter = 5\n[bench]\nnum_iter = 6\n");
  EXPECT_NE(text.find("line 2: \"bench\" is a table"), std::string::npos) << text;
  EXPECT_NE(text.find("without a [table]"), std::string::npos) << text;
}

TEST_F(FlagFile, WhatIsNoTomlIsNamedWithItsLine) {
  EXPECT_NE(readText("num_iter = 5\nnum_iter\n").find("line 2"), std::string::npos);
  EXPECT_NE(readText("num_iter = 2026-01-02\n").find("no text, number"), std::string::npos);
  const auto missing = readFlagFile("/no/such/file", kKnown);
  EXPECT_NE(missing.error().text().find("/no/such/file"), std::string::npos);
  EXPECT_FALSE(readFlagFile(::testing::TempDir(), kKnown));
}

TEST(Ranks, AreTakenFromAStatefulSetsPod) {
  EXPECT_EQ(ordinalOf("decode-3"), 3U);
  EXPECT_EQ(ordinalOf("my-job-17"), 17U);
  EXPECT_EQ(ordinalOf("decode"), std::nullopt);
  EXPECT_EQ(ordinalOf("web-7d4b9c6f5-x2x9z"), std::nullopt);
  EXPECT_EQ(ordinalOf("web-12345"), std::nullopt);
  EXPECT_EQ(ordinalOf("web-"), std::nullopt);
}

}  // namespace
}  // namespace viaduct::app
