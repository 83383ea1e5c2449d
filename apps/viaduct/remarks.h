// What a command says on standard error, under the name it was called by. Threads: the main one.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "viaduct/commands.h"

namespace viaduct::app {

// "viaduct bench", at the start of every line from now on. Kept as it is: a literal.
void calledAs(std::string_view name);

void remark(const std::string& text);
// Says why the command ends, and gives back what with.
int fail(const std::string& text, Exit code);
// Says all that is wrong with the command line, a line each.
int failAll(const std::vector<Error>& problems);

}  // namespace viaduct::app
