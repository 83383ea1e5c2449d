// Facts about the backend fake. Threads: constants and pure functions.
#pragma once

#include <viaduct/backend.h>

#include <array>

#include "core/setting_row.h"
#include "core/words.h"

namespace viaduct::fake {

inline constexpr std::array kSettings{
    core::textSetting<&Settings::weather>(
        "VIADUCT_WEATHER",
        "For the fake backend: faults to inject into each op, such as "
        "seed=7,delay_us=50,lose_rail=0.01."),
};

inline constexpr BackendFacts kFacts{
    .name = "fake",
    .realm =
        [](std::string_view way) {
          return core::firstWord(way) == "rdma" ? Realm::kRdma : Realm::kMemory;
        },
    .for_tests = true,
    .settings = kSettings,
};

}  // namespace viaduct::fake
