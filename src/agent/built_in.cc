#include <viaduct/settings.h>

#include "core/backend.h"

namespace viaduct {

std::vector<std::string_view> builtInBackends() {
  std::vector<std::string_view> names;
  for (const core::BackendEntry& entry : core::backendCatalogue()) names.push_back(entry.name);
  return names;
}

}  // namespace viaduct
