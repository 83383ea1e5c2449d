#include "measure/report/marks.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "measure/report/html.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kMarks = 8;
// The number of dashes has no common divisor with the numbers of colours and marks. So lines with
// equal colours or marks differ in dashes.
constexpr std::array<std::string_view, 5> kDashes{"", "7 4", "2 3", "10 3 2 3", "14 5"};

struct Corner {
  double x, y;
};

template <std::size_t N>
std::string shape(const std::array<Corner, N>& corners, double x, double y, double radius) {
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
constexpr std::array kFlag{Corner{-1, -1.2}, Corner{1.2, 0}, Corner{-1, 1.2}};
constexpr std::array kBar{Corner{-.45, -1.3}, Corner{.45, -1.3}, Corner{.45, 1.3},
                          Corner{-.45, 1.3}};

}  // namespace

std::string colourClass(std::size_t line) { return fmt::format("c{}", line % kLinesOfDrawing); }

std::string dashes(std::size_t line) {
  const std::string_view dash = kDashes[line % kDashes.size()];
  return dash.empty() ? std::string{} : fmt::format(" stroke-dasharray=\"{}\"", dash);
}

std::string mark(std::size_t line, double x, double y, double radius) {
  switch (line % kMarks) {
    case 0:
      return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>", px(x), px(y), px(radius));
    case 1:
      return shape(kSquare, x, y, radius);
    case 2:
      return shape(kUp, x, y, radius);
    case 3:
      return shape(kDiamond, x, y, radius);
    case 4:
      return shape(kDown, x, y, radius);
    case 5:
      return shape(kPlus, x, y, radius);
    case 6:
      return shape(kFlag, x, y, radius);
    default:
      return shape(kBar, x, y, radius);
  }
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
