// Features of the session protocol that not all versions have. Each end names its own in its hello,
// and the session uses those of both. Threads: plain values.
#pragma once

#include <array>
#include <cstdint>

namespace viaduct::agent {

// A new feature comes last. docs/wire.md has the versions that know each feature.
enum class Feature : std::uint8_t {
  kBase,  // of all versions
  kParcels,
};
inline constexpr std::array kFeatureNames{"base", "parcels"};

constexpr std::uint64_t bitOf(Feature feature) {
  return std::uint64_t{1} << static_cast<unsigned>(feature);
}

#ifndef VIADUCT_WITHOUT_FEATURES
#define VIADUCT_WITHOUT_FEATURES 0  // bits; a build for tests lacks some
#endif
inline constexpr std::uint64_t kOurFeatures =
    ((std::uint64_t{1} << kFeatureNames.size()) - 1) & ~std::uint64_t{VIADUCT_WITHOUT_FEATURES};

}  // namespace viaduct::agent
