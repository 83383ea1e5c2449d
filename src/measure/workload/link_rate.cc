#include "measure/workload/link_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <span>
#include <utility>

#include "base/text.h"

namespace viaduct::measure {
namespace {

constexpr double kFastest = 1e15;  // bytes a second
using Words = std::span<const std::string_view>;
// Units after the prefixes k, m, g or t. Links are sold in bits, so "100G" means bits too. Only a
// capital B means bytes.
constexpr std::array<std::string_view, 5> kBitWords{"", "bit", "bits", "bit/s", "bits/s"};
constexpr std::array<std::string_view, 3> kBits{"b", "b/s", "bps"};
constexpr std::array<std::string_view, 3> kBytes{"B", "B/s", "Bps"};
constexpr std::array kPrefixes{std::pair('k', 1e3), std::pair('m', 1e6), std::pair('g', 1e9),
                               std::pair('t', 1e12)};

bool isOneOf(Words words, std::string_view text) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Returns bytes a second, or 0 if the text is no unit of a rate.
double bytesOf(std::string_view unit) {
  const std::string small = base::lower(unit);
  for (const auto& [prefix, factor] : kPrefixes) {
    if (!small.starts_with(prefix)) continue;
    const std::string_view rest = unit.substr(1);
    if (isOneOf(kBytes, rest)) return factor;
    if (isOneOf(kBits, rest) || isOneOf(kBitWords, small.substr(1))) return factor / 8;
  }
  return 0;
}

Error badRate(std::string_view text, std::string why) {
  return {.code = Code::kInvalid,
          .operation = "--link-rate",
          .detail = fmt::format("\"{}\": {}", text, why),
          .remedy =
              "write DEVICE=RATE, such as eth0=500Mbit, eth0=100G (bits) or mlx5_0=12.5GB (bytes)"};
}

}  // namespace

Result<LinkRate> parseLinkRate(std::string_view text) {
  const auto equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0)
    return badRate(text, "the device is missing");
  const std::string_view rate = text.substr(equals + 1);
  double figure = 0;
  const auto [end, failure] = std::from_chars(rate.data(), rate.data() + rate.size(), figure);
  if (failure != std::errc{} || !(figure > 0))
    return badRate(text, "the rate is not a number above 0");
  const std::string_view unit(end, static_cast<std::size_t>(rate.data() + rate.size() - end));
  const double factor = bytesOf(unit), bytes = figure * factor;
  if (unit.empty()) return badRate(text, "the rate has no unit");
  if (factor == 0) return badRate(text, fmt::format("\"{}\" is not a unit of rate", unit));
  if (bytes < 1 || bytes > kFastest) return badRate(text, "no link has this rate");
  return LinkRate{std::string(text.substr(0, equals)), static_cast<std::uint64_t>(bytes)};
}

}  // namespace viaduct::measure
