// The backend that moves bytes by libfabric's writes and reads. NOTES.md has its guarantees.
#include "backends/ofi/choose.h"
#include "base/log.h"

namespace viaduct::ofi {

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  VIADUCT_TRY(auto chosen, choose(context.settings));
  static std::atomic_flag warned;
  if (!chosen.can.rdma && !static_cast<const OfiDomain&>(*chosen.domains.front()).connects())
    base::logOnce(warned, base::LogLevel::kWarning,
                  "backend ofi runs over {}: a process that reaches its ports and guesses a key "
                  "can read and write registered memory; the provider tcp authenticates peers",
                  chosen.kind);
  return move::FabricBackend::open(context, std::move(chosen));
}

}  // namespace viaduct::ofi
