// Prints messages to stderr, with the name of the command in front. Threads: the main one.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "viaduct/commands.h"

namespace viaduct::app {

// Sets the name at the start of every message, such as "viaduct bench".
void calledAs(std::string name);

void remark(const std::string& text);
// Prints why the command ends, and returns the exit code.
int fail(const std::string& text, int code);
// Returns the exit code in `code`, or prints the error in it and returns `failure`.
int orFail(const Result<int>& code, int failure);
// Prints all problems of the command line, one a line.
int failAll(const std::vector<Error>& problems);

}  // namespace viaduct::app
