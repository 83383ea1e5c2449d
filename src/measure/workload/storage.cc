#include "measure/workload/storage.h"

#include <fmt/format.h>

#include "measure/workload/stored_files.h"
#include "measure/workload/stored_objects.h"

namespace viaduct::measure {

Result<std::unique_ptr<Storage>> Storage::make(Agent& agent, const Peer& self, const Spec& spec,
                                               const DeviceBytes& bytes, std::uint32_t number) {
  const std::string label = fmt::format("bench-copy-{}", number);
  VIADUCT_TRY(Buffer copy, Buffer::make(agent, bytes.target, {spec.memory, false}, label));
  if (spec.storage.kind == MemoryKind::kObject)
    return StoredObjects::make(agent, self, spec, number, std::move(copy), label);
  return StoredFiles::make(agent, self, spec, bytes, number, std::move(copy));
}

}  // namespace viaduct::measure
