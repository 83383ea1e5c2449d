// The files that an installation has besides the program: manual pages and completions. Threads:
// any.
#pragma once

#include <string>

#include "viaduct/command_page.h"

namespace viaduct::app {

// `root`: the page of `viaduct`.
int printCompletion(const CommandPage& root, const std::string& shell);

// `viaduct help --pages FOLDER`, which the build runs: man1/viaduct.1 and so on, and viaduct.bash,
// viaduct.zsh and viaduct.fish.
int writePages(const CommandPage& root, const std::string& folder);

}  // namespace viaduct::app
