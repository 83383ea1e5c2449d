// Facts about the backend fake. Threads: constants and pure functions.
#pragma once

#include <viaduct/backend.h>

#include <array>

#include "backends/fake/fake_options.h"
#include "core/setting_row.h"
#include "core/words.h"

namespace viaduct::fake {

inline constexpr core::OtherSetting<FakeOptions> kOptions{"VIADUCT_FAKE", "", parseOptions};

inline constexpr std::array kSettings{
    core::otherRow<kOptions>("For the fake backend: what it pretends, such as rails=4,lie=swap."),
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
