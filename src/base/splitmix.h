// The step of splitmix64, for the host and for kernels of a GPU. Threads: pure function.
#pragma once

#include <cstdint>

namespace viaduct::base {

inline constexpr std::uint64_t kSplitmixStep = 0x9e3779b97f4a7c15U;

// Mixes the bits of a number. No two numbers give the same result.
constexpr std::uint64_t splitmix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace viaduct::base
