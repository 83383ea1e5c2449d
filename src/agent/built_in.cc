#include <viaduct/backend.h>
#include <viaduct/settings.h>

#include "core/backend.h"

namespace viaduct {

std::vector<std::string_view> builtInBackends() {
  std::vector<std::string_view> names;
  for (const core::BackendEntry& entry : core::backendCatalogue()) names.push_back(entry.name);
  return names;
}

std::string backendLibrary(std::string_view name) {
  for (const core::BackendEntry& entry : core::backendCatalogue())
    if (entry.name == name && entry.library != nullptr) return entry.library();
  return {};
}

const BackendFacts* backendFacts(std::string_view name) {
  for (const BackendFacts& facts : backendFacts())
    if (facts.name == name) return &facts;
  return nullptr;
}

}  // namespace viaduct
