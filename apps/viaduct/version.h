// `viaduct version`, and the text of `viaduct --version`. Threads: the main one.
#pragma once

#include <string>
#include <string_view>

#include "measure/result/report.h"

namespace viaduct::app {

// Returns the commit of this build: "fc1515512ab0", or "fc1515512ab0-changed" if files differed
// from it. Empty: built without git, such as from an archive.
std::string_view gitCommit();

measure::Build thisBuild();

// Returns the version, and the backends with the libraries that they load on this machine.
std::string versionText();

}  // namespace viaduct::app
