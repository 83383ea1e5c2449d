// `viaduct`, and the same program under the name `nixlbench`.
#include <filesystem>
#include <string>

#include "viaduct/command_line.h"
#include "viaduct/generated_files.h"
#include "viaduct/nixlbench.h"
#include "viaduct/run_program.h"

namespace {

using namespace viaduct::app;

// Turns `help bench` into `bench --help`.
CommandWords asFlags(CommandWords words) {
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  if (words.empty() || words[0] != "--help") words.emplace_back("--help");
  return words;
}

int run(int argc, char** argv) {
  const CommandWords typed(argv + 1, argv + argc);
  // Each command, and `nixlbench`, has the flag --version.
  if (!typed.empty() && typed.size() <= 2 && asksForVersion(typed.back()))
    return viaductCommand().run({"--version"});
  if (std::filesystem::path(argv[0]).filename() == "nixlbench") return runNixlbench(typed);
  if (typed.size() == 3 && typed[0] == "help" && typed[1] == "--pages")
    return writePages(viaductCommand().page(), typed[2]);
  return viaductCommand().run(asFlags(typed));
}

}  // namespace

int main(int argc, char** argv) { return runProgram(run, argc, argv); }
