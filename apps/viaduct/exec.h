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
  std::vector<std::string> command = {};  // all words behind "--"
};
void declareExec(CLI::App& app, ExecOptions& options);
// The words behind the first "--" of `viaduct exec` are the command's: they are taken out of
// `words`, and no flag is looked for in them.
void takeCommand(std::vector<std::string>& words, ExecOptions& into);
// Returns only if the command cannot be started.
int runExec(const ExecOptions& options);

}  // namespace viaduct::app
