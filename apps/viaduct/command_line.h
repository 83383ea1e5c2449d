// The program `viaduct` and all of its subcommands. Threads: the main one.
#pragma once

#include "viaduct/command.h"

namespace viaduct::app {

Command benchCommand();
Command compareCommand();
Command completionCommand();
// `more`: further commands within this one.
Command doctorCommand(std::vector<Command> more = {});
Command envCommand();
Command execCommand();
Command kvBenchCommand();
Command kvCommand();
Command kvTraceCommand();
Command matrixCommand();
Command meetCommand();
Command p2pCommand();
Command patternCommand();
Command pipelineCommand();
Command reportCommand();
Command settingsCommand();
Command suiteCommand();
Command swapCommand();
Command topCommand();
Command versionCommand();
Command validateCommand();

// Returns `viaduct` itself. All other commands are nested in it.
Command viaductCommand();

}  // namespace viaduct::app
