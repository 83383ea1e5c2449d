// `viaduct exec`. Threads: the main one.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace viaduct::app {

struct ExecOptions {
  bool force = false, dry_run = false;
  std::vector<std::string> command = {};  // the words after "--"
};
void declareExec(CLI::App& app, ExecOptions& options);
// Moves the words after the first "--" of `viaduct exec` from `words` to `into`, because they are
// the command's and not our flags.
void takeCommand(std::vector<std::string>& words, ExecOptions& into);
// Returns only if the command cannot be started.
int runExec(const ExecOptions& options);

}  // namespace viaduct::app
