// Colours, dashes and marks, which together tell the lines of a chart apart. Threads: pure.
#pragma once

#include <cstddef>
#include <string>

namespace viaduct::measure {

// The most lines of one drawing. There are as many colours, so each line has its own colour.
inline constexpr std::size_t kLinesOfDrawing = 12;
// Returns the CSS class of the line's colour: "c0" to "c11".
std::string colourClass(std::size_t line);
// Returns the attribute stroke-dasharray, or an empty text for a solid line.
std::string dashes(std::size_t line);
// Returns the line's mark around a point.
std::string mark(std::size_t line, double x, double y, double radius);
// Returns a piece of the line with its mark, for the legend.
std::string swatch(std::size_t line);

}  // namespace viaduct::measure
