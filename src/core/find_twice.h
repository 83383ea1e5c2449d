// Finds repeated block numbers. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace viaduct::core {

// A number that the list has twice. All numbers are less than `count`. Uses a bitmap over all
// blocks, or sorts if the list takes few of very many blocks.
std::optional<std::uint32_t> findTwice(std::span<const std::uint32_t> indices, std::uint64_t count);

}  // namespace viaduct::core
