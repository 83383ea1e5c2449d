// Facts about the backend toy, which uses each kind of fact. Threads: constants and pure functions.
#pragma once

#include <viaduct/backend.h>

#include <array>

#include "core/setting_row.h"
#include "core/words.h"

namespace viaduct::toy {

inline constexpr std::string_view kSpeed = "VIADUCT_TOY_SPEED";

inline Status parseSpeed(std::string_view text, Settings& into) {
  if (!core::isOneOf(text, {"", "slow", "fast"})) return core::expectedForm("slow or fast");
  into.others.erase(std::string(kSpeed));
  if (!text.empty()) into.others.emplace(kSpeed, text);
  return Ok{};
}

inline std::string speedOf(const Settings& settings) {
  const auto at = settings.others.find(kSpeed);
  return at == settings.others.end() ? "" : at->second;
}

inline constexpr std::array kSettings{
    SettingRow{.variable = kSpeed,
               .fallback = "",
               .help = "For the toy backend: slow or fast.",
               .parse = parseSpeed,
               .show = speedOf},
};
inline constexpr std::array<std::string_view, 1> kAliases{"TOYLIB"};

inline constexpr BackendFacts kFacts{
    .name = "toy",
    .aliases = kAliases,
    .variables = "TOY_",
    .realm =
        [](std::string_view way) {
          return core::firstWord(way) == "wire" ? Realm::kRdma : Realm::kSockets;
        },
    .settings = kSettings,
};

}  // namespace viaduct::toy
