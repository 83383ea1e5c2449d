#include "measure/report/marks.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>

#include "measure/report/html.h"

namespace viaduct::measure {
namespace {

// The number of dashes has no common divisor with the numbers of colours and marks. So lines with
// equal colours or marks differ in dashes.
constexpr std::array<std::string_view, 5> kDashes{"", "7 4", "2 3", "10 3 2 3", "14 5"};

struct Corner {
  double x, y;
};

std::string shape(std::span<const Corner> corners, double x, double y, double radius) {
  std::string out = "<path d=\"";
  char step = 'M';
  for (const Corner& c : corners) {
    out += fmt::format("{}{} {}", step, px(x + c.x * radius), px(y + c.y * radius));
    step = 'L';
  }
  return out + "Z\"/>";
}

constexpr std::array kSquare{Corner{-.9, -.9}, Corner{.9, -.9}, Corner{.9, .9}, Corner{-.9, .9}};
constexpr std::array kUp{Corner{0, -1.2}, Corner{1.1, .8}, Corner{-1.1, .8}};
constexpr std::array kDiamond{Corner{0, -1.3}, Corner{1.3, 0}, Corner{0, 1.3}, Corner{-1.3, 0}};
constexpr std::array kDown{Corner{0, 1.2}, Corner{1.1, -.8}, Corner{-1.1, -.8}};
constexpr std::array kPlus{Corner{-.4, -1.2}, Corner{.4, -1.2},  Corner{.4, -.4},
                           Corner{1.2, -.4},  Corner{1.2, .4},   Corner{.4, .4},
                           Corner{.4, 1.2},   Corner{-.4, 1.2},  Corner{-.4, .4},
                           Corner{-1.2, .4},  Corner{-1.2, -.4}, Corner{-.4, -.4}};
constexpr std::array kFlagMark{Corner{-1, -1.2}, Corner{1.2, 0}, Corner{-1, 1.2}};
constexpr std::array kBar{Corner{-.45, -1.3}, Corner{.45, -1.3}, Corner{.45, 1.3},
                          Corner{-.45, 1.3}};
// All marks except the first, which is a circle.
constexpr std::array<std::span<const Corner>, 7> kShapes{kSquare, kUp,       kDiamond, kDown,
                                                         kPlus,   kFlagMark, kBar};

}  // namespace

std::string colourClass(std::size_t line) { return fmt::format("c{}", line % kLinesOfDrawing); }

std::string dashes(std::size_t line) {
  const std::string_view dash = kDashes[line % kDashes.size()];
  return dash.empty() ? std::string{} : fmt::format(" stroke-dasharray=\"{}\"", dash);
}

std::string mark(std::size_t line, double x, double y, double radius) {
  const std::size_t number = line % (kShapes.size() + 1);
  if (number != 0) return shape(kShapes[number - 1], x, y, radius);
  return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>", px(x), px(y), px(radius));
}

std::string swatch(std::size_t line) {
  constexpr double kWidth = 40, kHeight = 14;
  return fmt::format(
      "<svg class=\"swatch {}\" width=\"{}\" height=\"{}\" aria-hidden=\"true\"><path "
      "class=\"line\" "
      "d=\"M1 {}H{}\"{}/><g class=\"mark\">{}</g></svg>",
      colourClass(line), kWidth, kHeight, kHeight / 2, kWidth - 1, dashes(line),
      mark(line, kWidth / 2, kHeight / 2, 4));
}

}  // namespace viaduct::measure
