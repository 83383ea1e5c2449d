// The common frame of the programs `viaduct` and `viaduct-doctor`. Threads: the main one.
#pragma once

#include <string>

namespace viaduct::app {

// Runs the program's commands and returns its exit code. Catches exceptions, and fails if the
// output cannot be written.
int runProgram(int (*run)(int argc, char** argv), int argc, char** argv);

// Whether a word asks for the version.
bool asksForVersion(const std::string& word);

}  // namespace viaduct::app
