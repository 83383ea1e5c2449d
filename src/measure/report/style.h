// How the page looks: light and dark, on paper, on a phone. Threads: a constant.
#pragma once

#include <string_view>

namespace viaduct::measure {

extern const std::string_view kStyle;

}  // namespace viaduct::measure
