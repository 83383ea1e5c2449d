// Generates the manual pages and shell completions of an installation. Threads: any.
#pragma once

#include <string>

#include "viaduct/command_page.h"

namespace viaduct::app {

// Runs `viaduct help --pages FOLDER`, which the build calls. `root` is the page of `viaduct`.
// Writes man1/viaduct.1 and the other manual pages, viaduct.bash, viaduct.zsh and viaduct.fish.
int writePages(const CommandPage& root, const std::string& folder);

// Returns the page docs/bench-flags.md: the flags of all commands that measure.
std::string flagsPage();

}  // namespace viaduct::app
