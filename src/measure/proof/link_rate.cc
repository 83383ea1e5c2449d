#include "measure/proof/link_rate.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

namespace viaduct::measure::proof {
namespace {

struct Unit {
  std::string_view name;
  double bytes_per_s;
};
constexpr std::array kUnits{Unit{"Mbit", 1e6 / 8}, Unit{"Gbit", 1e9 / 8},   Unit{"Mb/s", 1e6 / 8},
                            Unit{"Gb/s", 1e9 / 8}, Unit{"Mbit/s", 1e6 / 8}, Unit{"Gbit/s", 1e9 / 8},
                            Unit{"MB", 1e6},       Unit{"GB", 1e9},         Unit{"MB/s", 1e6},
                            Unit{"GB/s", 1e9}};

Error bad(std::string_view text, std::string why) {
  return {.code = Code::kInvalid,
          .operation = "--link-rate",
          .detail = fmt::format("\"{}\": {}", text, why),
          .remedy = "write DEVICE=RATE, as eth0=500Mbit, eth0=100Gbit or mlx5_0=12.5GB"};
}

}  // namespace

Result<LinkRate> parseLinkRate(std::string_view text) {
  const auto equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return bad(text, "names no device");
  const std::string_view rate = text.substr(equals + 1);
  double figure = 0;
  const auto [end, failure] = std::from_chars(rate.data(), rate.data() + rate.size(), figure);
  if (failure != std::errc{} || !(figure > 0) || figure > 1e6)
    return bad(text, "the rate is no number above 0");
  const std::string_view unit(end, static_cast<std::size_t>(rate.data() + rate.size() - end));
  for (const Unit& known : kUnits)
    if (known.name == unit)
      return LinkRate{std::string(text.substr(0, equals)),
                      static_cast<std::uint64_t>(figure * known.bytes_per_s)};
  return bad(text, unit.empty() ? "the rate has no unit"
                                : fmt::format("\"{}\" is no unit of a rate", unit));
}

}  // namespace viaduct::measure::proof
