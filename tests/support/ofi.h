// The libfabric provider for the contract of the backends. Threads: any.
#pragma once

#include <cstdlib>
#include <string>

namespace viaduct::testing {

// The value of VIADUCT_OFI_PROVIDER; empty: the backend chooses.
inline std::string ofiProvider() {
  const char* const named = std::getenv("VIADUCT_OFI_PROVIDER");
  return named == nullptr ? "" : named;
}

}  // namespace viaduct::testing
