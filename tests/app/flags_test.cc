#include "viaduct/flags.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "viaduct/ranks.h"

namespace viaduct::app {
namespace {

constexpr FlagName kKnown[] = {{"backend"}, {"num_iter"}, {"recreate_xfer", true}, {"op_type"}};

// The flags, or the problems, one per line.
std::string shown(const FlagsRead& read) {
  std::string out;
  for (const Error& problem : read.problems) out += problem.text() + "\n";
  if (read.problems.empty())
    for (const Given& one : read.given) out += one.name + "=" + one.text + ";";
  return out;
}

std::string read(const std::vector<std::string>& words) { return shown(readFlags(words, kKnown)); }

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

TEST(Flags, AWrongFlagIsNamed) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--num_itre", "5"}, "did you mean --num_iter?"},
      {{"--iter", "5"}, "did you mean --num_iter?"},
      {{"--colour"}, "--colour: invalid: there is no such flag"},
      {{"--nobackend"}, "there is no such flag"},
      {{"--num_iter"}, "--num_iter: invalid: a value is missing"},
      {{"5"}, "\"5\" is not a flag"},
      {{"--"}, "\"--\" is not a flag"},
      {{"--flagfile=x"}, "flags from gflags files and the environment are not read"},
      {{"--fromenv=num_iter"}, "flags from gflags files and the environment are not read"},
      {{"--tryfromenv", "x"}, "flags from gflags files and the environment are not read"},
  };
  for (const auto& [words, text] : cases)
    EXPECT_NE(read(words).find(text), std::string::npos) << read(words);
}

TEST(Flags, AllThatIsWrongIsNamedOnce) {
  const FlagsRead found = readFlags(std::vector<std::string>{"--colour", "red", "--num_iter=5",
                                                             "--bakend=tcp", "stray", "--op_type"},
                                    kKnown);
  ASSERT_EQ(found.problems.size(), 4U) << shown(found);
  EXPECT_EQ(found.problems[0].operation, "--colour") << "red is its value";
  EXPECT_EQ(found.problems[1].operation, "--bakend");
  EXPECT_EQ(found.problems[2].detail, "\"stray\" is not a flag");
  EXPECT_EQ(found.problems[3].detail, "a value is missing");
  ASSERT_EQ(found.given.size(), 1U) << "what is right is read";
  EXPECT_EQ(found.given[0].name, "num_iter");
}

TEST(Flags, AFlagOfOneValueIsGivenOnce) {
  EXPECT_NE(
      read({"--backend=tcp", "--backend", "ucx"}).find("--backend: invalid: it is given twice"),
      std::string::npos);
  EXPECT_NE(read({"--recreate_xfer", "--norecreate_xfer"}).find("given twice"), std::string::npos);
  constexpr FlagName kSome[] = {{.name = "path", .many = true}};
  EXPECT_EQ(shown(readFlags(std::vector<std::string>{"--path", "a", "--path", "b"}, kSome)),
            "path=a;path=b;");
  EXPECT_EQ(shown(readFlags(std::vector<std::string>{"--num_iter=1", "--num_iter=2"}, kKnown,
                            Repeats::kLastWins)),
            "num_iter=1;num_iter=2;");
}

TEST(Flags, AnArgumentMayBeNamed) {
  constexpr FlagName kSome[] = {{"MODEL"}, {"json", true}};
  for (const std::vector<std::string>& words : {std::vector<std::string>{"x", "--json"},
                                                {"--model", "x", "--json"},
                                                {"--model=x", "--json"}})
    EXPECT_EQ(shown(readFlags(words, kSome)), "MODEL=x;json=true;");
  EXPECT_NE(
      shown(readFlags(std::vector<std::string>{"x", "--model", "y"}, kSome)).find("given twice"),
      std::string::npos);
}

TEST(Flags, SeveralArgumentsTakeTheirWordsInOrder) {
  constexpr FlagName kSome[] = {{"FILE"}, {"MODEL"}, {"json", true}};
  for (const std::vector<std::string>& words : {std::vector<std::string>{"a", "--json", "b"},
                                                {"--file=a", "--json", "b"},
                                                {"a", "--json", "--model", "b"}})
    EXPECT_EQ(shown(readFlags(words, kSome)), "FILE=a;json=true;MODEL=b;");
  EXPECT_NE(shown(readFlags(std::vector<std::string>{"a", "b", "c"}, kSome)).find("given twice"),
            std::string::npos);
}

TEST(Flags, AFlagOfAnotherCommandIsNoMisspelling) {
  const Elsewhere other = [](std::string_view flag) {
    return flag == "op_types" || flag == "iter" ? std::optional(badFlag("", "it is elsewhere"))
                                                : std::nullopt;
  };
  const auto read = [&](const std::string& word) {
    return shown(readFlags(std::vector<std::string>{word, "5"}, kKnown, Repeats::kRefused, other));
  };
  EXPECT_EQ(read("--iter"),
            "--iter: invalid: it is elsewhere; what to do: did you mean "
            "--num_iter?\n");
  EXPECT_EQ(read("--op_types"),
            "--op_types: invalid: it is elsewhere; what to do: did you mean --op_type?\n");
  EXPECT_NE(read("--num_itre").find("there is no such flag"), std::string::npos);
}

TEST(Flags, WordsWithoutAFlagBelongToTheArgument) {
  constexpr FlagName kSome[] = {
      {.name = "FILES", .many = true}, {"json", true}, {.name = "before", .many = true}};
  const auto read = [&](const std::vector<std::string>& words) {
    return shown(readFlags(words, kSome));
  };
  EXPECT_EQ(read({"1", "--json", "0", "-"}), "FILES=1;json=true;FILES=0;FILES=-;");
  EXPECT_EQ(read({"--before", "a", "b", "--json=no"}), "before=a;before=b;json=no;");
  EXPECT_NE(read({"--"}).find("\"--\" is not a flag"), std::string::npos);
}

TEST(Flags, WordsBehindTwoDashesMayBeACommand) {
  constexpr FlagName kSome[] = {{.name = "COMMAND", .behind = true}, {"force", true}};
  EXPECT_EQ(shown(readFlags(std::vector<std::string>{"--force", "--", "ls", "-l", "--"}, kSome)),
            "force=true;COMMAND=ls;COMMAND=-l;COMMAND=--;");
  EXPECT_NE(shown(readFlags(std::vector<std::string>{"ls"}, kSome)).find("\"ls\" is not a flag"),
            std::string::npos);
}

TEST(Flags, SomeHaveAShortName) {
  constexpr FlagName kSome[] = {{"output"}};
  EXPECT_EQ(shown(readFlags(std::vector<std::string>{"-o", "a"}, kSome)), "output=a;");
  EXPECT_EQ(spellings("output", '-'), (std::vector<std::string>{"-o", "--output"}));
  EXPECT_EQ(spellings("op_type", '-'), std::vector<std::string>{"--op-type"});
}

TEST(Flags, AFlagThatDoesNothingHereIsNotSuggested) {
  constexpr FlagName kSome[] = {{"filepath", false, false}, {"file"}};
  const auto suggested = nearestFlags("filepaht", kSome);
  EXPECT_EQ(suggested.find("--filepath"), std::string::npos) << suggested;
}

class FlagFile : public ::testing::Test {
 protected:
  FlagFile()
      : file_(::testing::TempDir() + "viaduct_flags_" + std::to_string(::getpid()) + ".toml") {}
  ~FlagFile() override { std::filesystem::remove(file_); }
  std::string readText(const std::string& text) {
    std::ofstream(file_) << text;
    return shown(readFlagFile(file_, kKnown));
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

TEST_F(FlagFile, AllUnknownKeysAreNamed) {
  const std::string text = readText("one = 1\nnum_iter = 5\ntwo = [2, 3]\n");
  EXPECT_NE(text.find("line 1: unknown key \"one\""), std::string::npos) << text;
  EXPECT_NE(text.find("line 3: unknown key \"two\""), std::string::npos) << text;
}

TEST_F(FlagFile, ATableIsNoFlag) {
  for (const char* table : {"[bench]\nnum_iter = 6\n", "bench.num_iter = 6\n", "bench = {}\n"}) {
    const std::string text = readText(std::string("num_iter = 5\n") + table);
    EXPECT_NE(text.find("line 2: \"bench\" is a table"), std::string::npos) << text;
    EXPECT_NE(text.find("without a [table]"), std::string::npos) << text;
  }
}

TEST_F(FlagFile, ReadsTheNumbersOfToml) {
  const std::pair<const char*, const char*> cases[] = {
      {"5", "5"},     {"+5", "5"},    {"-5", "-5"},   {"1_000", "1000"}, {"0x1000", "4096"},
      {"0o17", "15"}, {"0b101", "5"}, {"1.5", "1.5"}, {"1e3", "1000"},   {"-0.25", "-0.25"},
  };
  for (const auto& [written, meant] : cases)
    EXPECT_EQ(readText(std::string("num_iter = ") + written + "\n"),
              std::string("num_iter=") + meant + ";");
}

TEST_F(FlagFile, ReadsTextsInEitherQuotes) {
  EXPECT_EQ(readText(R"(backend = "a \"b\" \\ # = [,]")"), R"(backend=a "b" \ # = [,];)");
  EXPECT_EQ(readText(R"(backend = 'C:\new')"), R"(backend=C:\new;)");
  EXPECT_EQ(readText("\"backend\" = \"\"\t# empty\n"), "backend=;");
}

TEST_F(FlagFile, AListMayTakeSeveralLines) {
  EXPECT_EQ(readText("backend = [ # two\r\n  'tcp',\r\n\r\n  \"local\", # and no more\r\n]\r\n"
                     "num_iter=5"),
            "backend=tcp,local;num_iter=5;");
  EXPECT_EQ(readText("backend = []"), "backend=;");
}

TEST_F(FlagFile, AnEmptyFileGivesNoFlag) {
  EXPECT_EQ(readText(""), "");
  EXPECT_EQ(readText("\n# nothing\n"), "");
}

TEST_F(FlagFile, AMistakeIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"num_iter = 5\nnum_iter\n", "line 2: there is no = after \"num_iter\""},
      {"\n = 5\n", "line 2: there is no key"},
      {"num_iter = 2026-01-02\n", "line 1: the value of \"num_iter\" is not a text, number"},
      {"backend = tcp\n", "put text into quotes"},
      {"num_iter = nan\n", "is not a text, number"},
      {"num_iter = 0x-5\n", "is not a text, number"},
      {"num_iter =\n", "is not a text, number"},
      {"num_iter = 5 6\n", "line 1: there is more after the value of \"num_iter\""},
      {"backend = \"\"\"tcp\"\"\"\n", "line 1: there is more after the value"},
      {"num_iter = 5\n\nnum-iter = 6\n", "line 3: \"num_iter\" is given twice"},
      {"backend = \"tcp\n", "line 1: a text has no closing \""},
      {"backend = 'tcp", "line 1: a text has no closing '"},
      {"backend = \"C:\\users\"\n", "put the text into single quotes"},
      {"backend = [\n'tcp'\n'local']\n", "line 3: the list of \"backend\" lacks a comma"},
      {"backend = ['tcp',\n", "is not a text, number"},
      {"backend = [['tcp']]\n", "is not a text, number"},
  };
  for (const auto& [text, error] : cases)
    EXPECT_NE(readText(text).find(error), std::string::npos) << text << readText(text);
}

TEST_F(FlagFile, AFileThatCannotBeReadIsNamed) {
  EXPECT_EQ(shown(readFlagFile("/no/such/file", kKnown)),
            "--config_file: not found: No such file or directory (errno 2); file /no/such/file\n");
  EXPECT_EQ(shown(readFlagFile("/proc", kKnown)),
            "--config_file: invalid: Is a directory (errno 21); file /proc\n");
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
