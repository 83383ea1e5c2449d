// Parses the command line and runs one subcommand.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "viaduct/command_line.h"
#include "viaduct/generated_files.h"
#include "viaduct/nixlbench.h"
#include "viaduct/remarks.h"

namespace {

using namespace viaduct::app;

bool asksForVersion(const std::string& word) { return word == "--version" || word == "-V"; }

// Turns `help bench` into `bench --help`.
CommandWords asFlags(CommandWords words) {
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  if (words.empty() || words[0] != "--help") words.emplace_back("--help");
  return words;
}

int run(int argc, char** argv) {
  const CommandWords typed(argv + 1, argv + argc);
  // Each command, and `nixlbench`, has this flag.
  if (!typed.empty() && typed.size() <= 2 && asksForVersion(typed.back()))
    return viaductCommand().run({"--version"});
  if (std::filesystem::path(argv[0]).filename() == "nixlbench") return runNixlbench(typed);
  if (typed.size() == 3 && typed[0] == "help" && typed[1] == "--pages")
    return writePages(viaductCommand().page(), typed[2]);
  return viaductCommand().run(asFlags(typed));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    // Buffered output may fail only here. A failed command has already printed its own error.
    const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (code != kExitOk || printed) return code;
    return fail("standard output could not be written", kExitFailed);
  } catch (const std::exception& e) {  // the standard library throws
    std::fprintf(stderr, "viaduct: %s\n", e.what());
  } catch (...) {
    std::fputs("viaduct: unknown exception\n", stderr);
  }
  return kExitFailed;
}
