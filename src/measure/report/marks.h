// How lines are told apart: by colour, dashes and the shape of their marks together. Threads: pure.
#pragma once

#include <cstddef>
#include <string>

namespace viaduct::measure {

// As many lines a drawing has, and as many colours there are: none comes twice.
inline constexpr std::size_t kLinesOfDrawing = 12;
// The class that has the colour: "c0" to "c11".
std::string colourClass(std::size_t line);
// The attribute stroke-dasharray, or nothing for a solid line.
std::string dashes(std::size_t line);
// The mark of a line, around a point.
std::string mark(std::size_t line, double x, double y, double radius);
// For the legend: a piece of the line with its mark.
std::string swatch(std::size_t line);

}  // namespace viaduct::measure
