// Facts about the backend ofi. Threads: constants and pure functions.
#pragma once

#include <viaduct/backend.h>

#include <array>

#include "core/setting_row.h"
#include "core/words.h"

namespace viaduct::ofi {

// `way` begins with the name of a provider. Every provider without a known name counts as RDMA.
constexpr Realm realmOf(std::string_view way) {
  const std::string_view provider = core::firstWord(way);
  if (core::isOneOf(provider, {"tcp", "net", "sockets", "udp"})) return Realm::kSockets;
  return core::isOneOf(provider, {"shm", "sm2"}) ? Realm::kMemory : Realm::kRdma;
}

inline constexpr std::array kSettings{
    core::textSetting<&Settings::ofi_provider>(
        "VIADUCT_OFI_PROVIDER",
        "For the ofi backend: the libfabric provider, named as in fi_info; by default the "
        "best available one."),
    core::toggleSetting<&Settings::inject>(
        "VIADUCT_INJECT",
        "For the ofi backend: copies a small write into its work request. auto and on: up "
        "to the provider's limit; off: never."),
    core::toggleSetting<&Settings::doorbell>(
        "VIADUCT_DOORBELL",
        "For the ofi backend: rings one doorbell for several work requests. auto: on RDMA; "
        "on: always; off: never."),
};
inline constexpr std::array<std::string_view, 1> kAliases{"LIBFABRIC"};

inline constexpr BackendFacts kFacts{
    .name = "ofi",
    .aliases = kAliases,
    .variables = "FI_",
    .realm = realmOf,
    .settings = kSettings,
};

}  // namespace viaduct::ofi
