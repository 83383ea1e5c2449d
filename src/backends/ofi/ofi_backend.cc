// The backend that moves bytes by libfabric's writes and reads. NOTES.md says what holds.
#include "backends/ofi/choose.h"
#include "base/log.h"
#include "core/fabric/fabric_backend.h"

namespace viaduct::ofi {

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  VIADUCT_TRY(auto chosen, choose(context.settings));
  if (!chosen.rdma)
    base::log(base::LogLevel::kWarning,
              "backend ofi runs over {}, where anybody who reaches its ports can read and write "
              "what is registered of this process's memory; tcp asks who it is",
              chosen.provider);
  return core::fabric::FabricBackend::open(context, {.can = {.name = "ofi",
                                                             .memory = {MemoryKind::kHost},
                                                             .rdma = chosen.rdma,
                                                             .tcp = !chosen.rdma,
                                                             .preference = chosen.rdma ? 20 : 34},
                                                     .kind = chosen.provider,
                                                     .description = chosen.text,
                                                     .names = std::move(chosen.names),
                                                     .grounds = std::move(chosen.grounds)});
}

}  // namespace viaduct::ofi
