// How the page looks: light and dark, on paper, on a phone. Threads: pure.
#pragma once

#include <string_view>

namespace viaduct::measure {

std::string_view pageStyle();

}  // namespace viaduct::measure
