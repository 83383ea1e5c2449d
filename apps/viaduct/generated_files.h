// Generates the manual pages and shell completions of an installation. Threads: any.
#pragma once

#include <string>

#include "viaduct/command_page.h"

namespace viaduct::app {

// `root` is the page of `viaduct`.
int printCompletion(const CommandPage& root, const std::string& shell);

// Runs `viaduct help --pages FOLDER`, which the build calls. Writes man1/viaduct.1 and the other
// manual pages, viaduct.bash, viaduct.zsh and viaduct.fish.
int writePages(const CommandPage& root, const std::string& folder);

}  // namespace viaduct::app
