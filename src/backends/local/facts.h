// Facts about the backend local. Threads: constants.
#pragma once

#include <viaduct/backend.h>

#include <array>

#include "core/setting_row.h"

namespace viaduct::local {

inline constexpr std::array kSettings{
    core::countSetting<&Settings::copy_threads, 0, 256>(
        "VIADUCT_COPY_THREADS", "0",
        "Threads for copies on this host, up to 256; 0 chooses by the number of cores."),
    core::toggleSetting<&Settings::wide_copies>(
        "VIADUCT_WIDE_COPIES",
        "On one host: whether copies of 64KiB or more write past the cache. auto: if their "
        "first pieces were not in the cache; on: always; off: never."),
    core::sizeSetting<&Settings::populate, 0, std::uint64_t{1} << 44U>(
        "VIADUCT_POPULATE", "4GiB",
        "Limit of the shared memory that an agent populates in the background after pinning. The "
        "same limit holds for the peers' memory that it maps ahead of use. 0: none."),
};

inline constexpr BackendFacts kFacts{
    .name = "local",
    .realm = [](std::string_view) { return Realm::kMemory; },
    .usual = true,
    .settings = kSettings,
};

}  // namespace viaduct::local
