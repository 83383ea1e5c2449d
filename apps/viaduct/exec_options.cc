#include <CLI/CLI.hpp>
#include <algorithm>

#include "viaduct/exec.h"

namespace viaduct::app {
namespace {

constexpr auto kExecAbout =
    "Start a program with the variables of `viaduct env`.\n\n"
    "Write the program behind --: viaduct exec [OPTIONS] -- COMMAND [ARGUMENTS...]\n\n"
    "The program takes the place of this process, so signals and exit codes pass. Limits for "
    "locked memory and open files are raised as far as permitted. A variable that is set already "
    "stays. The variables are also written to $XDG_RUNTIME_DIR/viaduct/env, or without that folder "
    "to /run/viaduct/env, so that later shells of the container can source them.";
constexpr auto kExecMore =
    "Exit codes: the program's own; 126 if it cannot be run; 127 if there is no such program; 2 if "
    "the command line is wrong.\n\n"
    "Examples:\n"
    "  Start a server on the devices of this pod:\n"
    "    viaduct exec -- vllm serve MODEL\n"
    "  See what would be done:\n"
    "    viaduct exec --dry-run -- vllm serve MODEL\n"
    "  Get the same variables in a shell of `kubectl exec`:\n"
    "    . /run/viaduct/env";

}  // namespace

void declareExec(CLI::App& app, ExecOptions& options) {
  CLI::App& exec = *app.add_subcommand("exec", kExecAbout);
  exec.footer(kExecMore);
  exec.add_flag("--force", options.force, "Replace variables that are set already");
  exec.add_flag("--dry-run", options.dry_run,
                "Print the variables and the command, and start nothing");
}

void takeCommand(std::vector<std::string>& words, ExecOptions& into) {
  if (words.empty() || words[0] != "exec") return;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return;
  into.command.assign(dashes + 1, words.end());
  words.erase(dashes, words.end());
}

}  // namespace viaduct::app
