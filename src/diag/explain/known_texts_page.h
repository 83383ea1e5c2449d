// The tables of docs/explain.md. Threads: pure functions.
#pragma once

#include <string>

namespace viaduct::diag {

// Markdown: the known texts by kind, and the codes of findings.
std::string knownTextsPage();

}  // namespace viaduct::diag
