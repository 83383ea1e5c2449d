#include "viaduct/command_line.h"

#include <fmt/format.h>

#include <array>

#include "viaduct/bench_values.h"
#include "viaduct/version.h"

namespace viaduct::app {
namespace {

struct Nothing {
  bool version = false;
};
// main() turns `help bench` into `bench --help`. The command `help` is here only so that the help
// of `viaduct` lists it.
struct HelpOptions {
  std::string command;
};
constexpr std::array kHelpFlags{Flag<HelpOptions>{"COMMAND", "COMMAND", "", "such as bench",
                                                  set<intoText, &HelpOptions::command>}};

constexpr std::array kProgramFlags{
    Flag<Nothing>{"version", "", "", "print the versions of viaduct and of the loaded libraries",
                  set<intoYesNo, &Nothing::version>}};

int runViaduct(const Nothing& asked) {
  if (asked.version) {
    fmt::print("{}", versionText());
    return kExitOk;
  }
  fmt::print(stderr, "{}", pageHelp(viaductCommand().page()));
  return kExitUsage;
}

}  // namespace

Command viaductCommand() {
  const auto help =
      commandOf<HelpOptions>({.name = "viaduct help",
                              .about = "Print the help of a command, as in `viaduct help bench`.",
                              .flags = kHelpFlags,
                              .run = [](const HelpOptions&) { return runViaduct({}); }});
  return commandOf<Nothing>(
      {.name = "viaduct",
       .about = "Moves memory blocks between processes and hosts, and measures how fast they move.",
       .more =
           "Each command has a page of its own, such as viaduct-bench(1). Variables of the "
           "environment named VIADUCT_* configure every command. `viaduct settings` lists them.\n\n"
           "A flag of one value is given once: a repeated one is refused. Flags whose form ends "
           "with "
           "... take several values and may be repeated. nixlbench takes the last value of a "
           "repeated flag.",
       .flags = kProgramFlags,
       .run = runViaduct,
       .nested = {benchCommand(),
                  kvCommand(),
                  patternCommand(),
                  pipelineCommand(),
                  swapCommand(),
                  matrixCommand(),
                  p2pCommand(),
                  suiteCommand(),
                  compareCommand(),
                  reportCommand(),
                  validateCommand(),
                  doctorCommand(),
                  envCommand(),
                  execCommand(),
                  meetCommand(),
                  topCommand(),
                  settingsCommand(),
                  completionCommand(),
                  help,
                  versionCommand()}});
}

}  // namespace viaduct::app
