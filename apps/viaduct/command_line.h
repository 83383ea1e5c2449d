// The program `viaduct` and all of its subcommands. Threads: the main one.
#pragma once

#include "viaduct/command.h"

namespace viaduct::app {

Command compareCommand();
Command completionCommand();
Command doctorCommand();
Command envCommand();
Command execCommand();
Command kvCommand();
Command meetCommand();
Command p2pCommand();
Command reportCommand();
Command settingsCommand();
Command topCommand();

// Returns `viaduct` itself. All other commands are nested in it.
Command viaductCommand();

}  // namespace viaduct::app
