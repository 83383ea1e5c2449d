#include "backends/fake/weather.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace viaduct::fake {
namespace {

struct Chance {
  std::string_view name;
  double Weather::* field;
};
constexpr std::array kChances{
    Chance{"reorder", &Weather::reorder},     Chance{"lose_rail", &Weather::lose_rail},
    Chance{"kill_peer", &Weather::kill_peer}, Chance{"corrupt", &Weather::corrupt},
    Chance{"swap", &Weather::swap},           Chance{"shift", &Weather::shift},
    Chance{"stale", &Weather::stale},         Chance{"hang", &Weather::hang}};

Error bad(std::string_view part, std::string_view why) {
  return {.code = Code::kInvalid,
          .operation = "settings: weather",
          .detail = fmt::format("\"{}\": {}", part, why),
          .remedy =
              "seed=N, delay_us=N, exhaust=N, rails=N and nodes=N (1 to 8), far=1, pose=1, and "
              "reorder, lose_rail, kill_peer, hang, corrupt, swap, shift, stale with a chance from "
              "0 to 1; joined by commas"};
}

Result<double> number(std::string_view part, std::string_view text, double most) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return bad(part, "not a number");
  if (value < 0 || value > most) return bad(part, fmt::format("must be from 0 to {}", most));
  return value;
}

Status apply(std::string_view part, Weather& weather) {
  const auto equals = part.find('=');
  if (equals == std::string_view::npos) return bad(part, "has no '='");
  const auto name = part.substr(0, equals);
  constexpr double kMostRails = 8;
  const bool few = name == "rails" || name == "nodes";
  const bool counts = name == "seed" || name == "delay_us" || name == "exhaust";
  const double most = few ? kMostRails : counts ? 1e9 : 1.0;
  VIADUCT_TRY(const double value, number(part, part.substr(equals + 1), most));
  if (few) {
    (name == "rails" ? weather.rails : weather.nodes) =
        std::max(static_cast<std::uint32_t>(value), 1U);
  } else if (name == "seed") {
    weather.seed = static_cast<std::uint64_t>(value);
  } else if (name == "delay_us") {
    weather.delay = std::chrono::microseconds(static_cast<std::int64_t>(value));
  } else if (name == "exhaust") {
    weather.exhaust = static_cast<std::uint32_t>(value);
  } else if (name == "far" || name == "pose") {
    (name == "far" ? weather.far : weather.pose) = value != 0;
  } else {
    const auto known = std::find_if(kChances.begin(), kChances.end(),
                                    [&](const Chance& chance) { return chance.name == name; });
    if (known == kChances.end()) return bad(part, "no such weather");
    weather.*known->field = value;
  }
  return Ok{};
}

}  // namespace

Result<Weather> parseWeather(std::string_view text) {
  Weather weather;
  while (!text.empty()) {
    const auto comma = text.find(',');
    VIADUCT_CHECK(apply(text.substr(0, comma), weather));
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return weather;
}

}  // namespace viaduct::fake
