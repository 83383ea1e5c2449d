// Whether a library can be preloaded into the shipped program.
#pragma once

namespace viaduct::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPreloads = false;
#else
inline constexpr bool kPreloads = true;
#endif

}  // namespace viaduct::testing
