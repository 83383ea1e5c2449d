// A fast checksum against accidents, not against people. Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace viaduct::agent {

// Goes on from `sum` over `bytes`. Every step is a bijection of the sum, so that any change within
// one 8-byte word is seen for certain. docs/wire.md gives the definition.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t sum = 0);

}  // namespace viaduct::agent
