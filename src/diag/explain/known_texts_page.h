// The tables of docs/explain.md. Threads: pure functions.
#pragma once

#include <string>

namespace viaduct::diag {

// The known texts by kind, and the codes of findings, as Markdown.
std::string knownTextsPage();

}  // namespace viaduct::diag
