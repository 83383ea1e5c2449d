// The head of an HTML page, with a style sheet for light and dark screens, paper and phones.
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::measure {

// Begins a page, up to its body. `title` is escaped HTML.
std::string pageHead(const std::string& title, std::string_view more_style = {});

}  // namespace viaduct::measure
