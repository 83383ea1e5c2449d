// Which of libfabric's providers the contract of the backends runs over. Threads: any.
#pragma once

#include <cstdlib>
#include <string>

namespace viaduct::testing {

// That of VIADUCT_OFI_PROVIDER; empty: the backend's own choice.
inline std::string ofiProvider() {
  const char* const named = std::getenv("VIADUCT_OFI_PROVIDER");
  return named == nullptr ? "" : named;
}

}  // namespace viaduct::testing
