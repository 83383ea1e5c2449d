#include <gtest/gtest.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/program.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

TEST(SettingsCommand, ThePageIsCurrent) {
  Program run({"settings", "--markdown"});
  EXPECT_EQ(run.finish(), 0);
  std::ifstream page(std::string(kSourceDir) + "/docs/settings.md");
  std::ostringstream text;
  text << page.rdbuf();
  EXPECT_EQ(run.out(), text.str()) << "viaduct settings --markdown > docs/settings.md";
}

TEST(SettingsCommand, PrintsEveryVariable) {
  Program run({"settings"});
  EXPECT_EQ(run.finish(), 0);
  EXPECT_NE(run.out().find("VIADUCT_DETECT=2s\n"), std::string::npos);
  EXPECT_NE(run.out().find("VIADUCT_FAKE\n"), std::string::npos);
}

TEST(SettingsCommand, AFailedWriteIsAFailure) {
  const int status =
      std::system(("'" + std::string(kProgram) + "' settings > /dev/full 2> /dev/null").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(SettingsCommand, AVariableThatIsNearlyASettingIsWarnedOf) {
  const std::vector<std::string> words{"bench", "--explain", "--backend", "local"};
  Program mistyped(words, {"VIADUCT_BACKEND=tcp"});
  EXPECT_EQ(mistyped.finish(), 0) << mistyped.err();
  EXPECT_NE(
      mistyped.err().find("there is no setting VIADUCT_BACKEND: did you mean VIADUCT_BACKENDS?"),
      std::string::npos)
      << mistyped.err();
  Program others(words, {"VIADUCT_SETUP=no", "VIADUCT_UBUNTU_MIRROR=v0", "VIADUCT_SEED=7",
                         "VIADUCT_LOG=info", "VIADUCT_PORT=tcp://10.0.0.1:7000"});
  EXPECT_EQ(others.finish(), 0);
  EXPECT_EQ(others.err().find("there is no setting"), std::string::npos) << others.err();
}

std::string printedBy(const std::vector<std::string>& words, const std::string& name = "viaduct") {
  Program run(words, {}, name);
  EXPECT_EQ(run.finish(), 0) << run.err();
  return run.out();
}

TEST(Version, NamesTheCommitAndTheLibrariesThatAreLoaded) {
  const std::string text = printedBy({"--version"});
  EXPECT_EQ(text.rfind("viaduct 0.", 0), 0U) << text;
  const bool from_git = std::filesystem::exists(std::string(kSourceDir) + "/.git") &&
                        std::system("git --version >/dev/null 2>&1") == 0;
  EXPECT_EQ(text.find(" (git ") != std::string::npos, from_git) << text;
  EXPECT_NE(text.find("\nbackends: cuda, file, local, "), std::string::npos) << text;
  const auto all = builtInBackends();
  const bool loads = std::find(all.begin(), all.end(), "ofi") != all.end();
  EXPECT_EQ(text.find("ofi (libfabric") != std::string::npos, loads) << text;
  EXPECT_EQ(text.find("fake"), std::string::npos) << text;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-V"}, {"version"}, {"bench", "--version"}, {"suite", "-V"}})
    EXPECT_EQ(printedBy(words), text) << words[0];
  EXPECT_EQ(printedBy({"--version"}, "nixlbench"), text);
}

TEST(Version, HasAllThatAReportOfAFaultNeeds) {
  const auto json = nlohmann::json::parse(printedBy({"version", "--json"}));
  const std::string text = printedBy({"--version"});
  EXPECT_EQ(text.rfind("viaduct " + json.at("version").get<std::string>(), 0), 0U) << text;
  for (const char* field : {"commit", "compiler", "libc", "kernel", "machine"})
    EXPECT_TRUE(json.at(field).is_string()) << field;
  for (const auto& backend : json.at("backends"))
    EXPECT_NE(text.find(backend.at("name").get<std::string>()), std::string::npos) << text;
  EXPECT_FALSE(json.at("backends").empty());
}

TEST(Help, OfACommandIsWhatItsFlagPrints) {
  EXPECT_EQ(printedBy({"help"}), printedBy({"--help"}));
  for (const char* command : {"bench", "suite", "compare", "p2p", "version"})
    EXPECT_EQ(printedBy({"help", command}), printedBy({command, "--help"})) << command;
}

// The command names under "Subcommands:".
std::vector<std::string> commands() {
  std::istringstream help(printedBy({"--help"}));
  std::vector<std::string> out;
  std::string line;
  while (std::getline(help, line) && line != "Subcommands:") {
  }
  while (std::getline(help, line))
    if (line.size() > 2 && line.starts_with("  ") && line[2] != ' ')
      out.push_back(line.substr(2, line.find(' ', 2) - 2));
  return out;
}

void expectFits(const std::string& text, const std::string& command) {
  constexpr std::size_t kColumns = 80;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), kColumns) << command << ": " << line;
}

TEST(Help, OfEveryCommandFitsEightyColumns) {
  expectFits(printedBy({"--help"}), "viaduct");
  expectFits(printedBy({"--help"}, "nixlbench"), "nixlbench");
  expectFits(printedBy({"settings"}), "viaduct settings");
  EXPECT_GE(commands().size(), 9U);
  for (const std::string& command : commands()) expectFits(printedBy({"help", command}), command);
}

TEST(Help, AMistypedCommandIsAnsweredWithTheNearest) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"benhc"}, {"help", "benhc"}, {"benhc", "--batch", "4"}}) {
    Program run(words);
    EXPECT_EQ(run.finish(), 2);
    EXPECT_EQ(run.err(), "viaduct: there is no command \"benhc\"; did you mean bench?\n");
  }
}

}  // namespace
}  // namespace viaduct::testing
