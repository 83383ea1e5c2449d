// Facts about the backend ucx. Threads: constants and pure functions.
#pragma once

#include <viaduct/backend.h>

#include <array>

#include "core/words.h"

namespace viaduct::ucx {

// `way` begins with the name of a transport. Every transport without a known name counts as RDMA.
constexpr Realm realmOf(std::string_view way) {
  const std::string_view transport = core::firstWord(way);
  if (transport == "tcp") return Realm::kSockets;
  return core::isOneOf(transport, {"shm", "posix", "sysv", "cma", "xpmem", "knem", "self"})
             ? Realm::kMemory
             : Realm::kRdma;
}

inline constexpr std::array<std::string_view, 1> kAliases{"UCX"};

inline constexpr BackendFacts kFacts{
    .name = "ucx",
    .aliases = kAliases,
    .variables = "UCX_",
    .realm = realmOf,
};

}  // namespace viaduct::ucx
