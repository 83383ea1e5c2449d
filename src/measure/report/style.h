// The head of a page, with its style sheet: light and dark, for paper and for phones. Threads:
// pure.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::measure {

// Begins a page, up to its body. `title` is escaped HTML.
std::string pageHead(const std::string& title, std::string_view more_style = {});

}  // namespace viaduct::measure
