#include "backends/fake/fake_options.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "base/text.h"
#include "core/setting_row.h"

namespace viaduct::fake {
namespace {

struct Count {
  std::string_view name;
  std::uint32_t FakeOptions::* field;
  std::uint64_t least, most;
};
constexpr std::array kCounts{
    Count{"rails", &FakeOptions::rails, 1, 8}, Count{"nodes", &FakeOptions::nodes, 1, 8},
    Count{"exhaust", &FakeOptions::exhaust, 0, 1'000'000}, Count{"far", &FakeOptions::far, 0, 1},
    Count{"pose", &FakeOptions::pose, 0, 1}};

// The names of the lies, in the order of the values of Lie.
constexpr std::array<std::string_view, 5> kLies{"none", "corrupt", "swap", "shift", "stale"};

bool readPart(std::string_view part, FakeOptions& into) {
  const auto equals = std::min(part.find('='), part.size());
  const auto name = part.substr(0, equals), value = part.substr(std::min(equals + 1, part.size()));
  const auto* const lie = std::ranges::find(kLies, value);
  if (name == "lie" && lie != kLies.end()) {
    into.lie = static_cast<Lie>(std::distance(kLies.begin(), lie));
    return true;
  }
  const auto* const count = std::ranges::find(kCounts, name, &Count::name);
  return count != kCounts.end() &&
         core::parseCount(value, count->least, count->most, into.*count->field);
}

}  // namespace

Status parseOptions(std::string_view text, FakeOptions& into) {
  const auto parts = base::partsOf(text);
  if (std::ranges::all_of(parts, [&](const auto& part) { return readPart(part, into); }))
    return Ok{};
  return core::expectedForm(
      "rails=N and nodes=N (1 to 8), exhaust=N, far=1, pose=1, and lie=corrupt, swap, shift or "
      "stale; joined by commas");
}

}  // namespace viaduct::fake
