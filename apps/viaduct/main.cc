// Parses the command line and runs one subcommand.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "viaduct/command_line.h"
#include "viaduct/commands.h"
#include "viaduct/exec.h"
#include "viaduct/generated_files.h"
#include "viaduct/remarks.h"
#include "viaduct/version.h"

namespace {

using namespace viaduct::app;

using Words = std::vector<std::string>;

bool asksForVersion(const std::string& word) { return word == "--version" || word == "-V"; }

int printVersion() {
  fmt::print("{}", versionText());
  return kExitOk;
}

// Turns `help bench` into `bench --help`, and `version` into `--version`.
Words asFlags(Words words) {
  if (words.empty()) return words;
  if (words[0] == "help") {
    words.erase(words.begin());
    if (words.empty() || words[0] != "--help") words.emplace_back("--help");
  } else if (words.size() == 1 && words[0] == "version") {
    words[0] = "--version";
  }
  return words;
}

int run(int argc, char** argv) {
  const Words typed(argv + 1, argv + argc);
  if (typed.size() == 1 && asksForVersion(typed[0])) return printVersion();
  if (std::filesystem::path(argv[0]).filename() == "nixlbench") return runBench(typed, true);
  Words words = asFlags(typed);
  ExecOptions exec;
  takeCommand(words, exec);
  if ((words.size() == 1 && asksForVersion(words[0])) ||
      (words.size() == 2 && asksForVersion(words[1])))
    return printVersion();
  if (!words.empty() && words[0] == "bench")
    return runBench({words.begin() + 1, words.end()}, false);
  if (!words.empty() && words[0] == "suite") return runSuite({words.begin() + 1, words.end()});
  CommandLine line(std::move(exec));
  if (typed.size() == 3 && typed[0] == "help" && typed[1] == "--pages")
    return writePages(line.page(), typed[2]);
  if (const auto wrong = line.unknownCommand(words)) return fail(*wrong, kExitUsage);
  if (const auto ended = line.parse(words)) return *ended;
  return line.run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    // Buffered output may fail only here. A failed command has already printed its own error.
    const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (code != kExitOk || printed) return code;
    std::fputs("viaduct: standard output could not be written\n", stderr);
    return kExitFailed;
  } catch (const std::exception& e) {  // CLI11 and the standard library throw
    std::fprintf(stderr, "viaduct: %s\n", e.what());
  } catch (...) {
    std::fputs("viaduct: unknown exception\n", stderr);
  }
  return kExitFailed;
}
