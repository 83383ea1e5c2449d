// The style sheet of the page: light and dark, for paper and for phones. Threads: pure.
#pragma once

#include <string_view>

namespace viaduct::measure {

std::string_view pageStyle();

}  // namespace viaduct::measure
