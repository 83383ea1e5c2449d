// What `viaduct --version` says. Threads: the main one.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::app {

// The commit that this was built from: "fc1515512ab0", or "fc1515512ab0-changed" where files
// differed from it. Empty: built without git, as from an archive.
std::string_view gitCommit();

// The version, and the backends with the libraries that they load here.
std::string versionText();

}  // namespace viaduct::app
