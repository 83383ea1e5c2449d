// The backend that moves bytes by UCX. NOTES.md says what holds, and what UCX does not give.
#include "backends/ucx/choose.h"
#include "base/log.h"

namespace viaduct::ucx {

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  VIADUCT_TRY(auto chosen, choose(context.settings));
  static std::atomic_flag warned;
  if (!chosen.can.rdma)
    base::logOnce(
        warned, base::LogLevel::kWarning,
        "backend ucx runs over TCP, where UCX talks to anybody who reaches its ports, and may end "
        "the process when a connection is lost while it is made; tcp does neither");
  return core::fabric::FabricBackend::open(context, std::move(chosen));
}

}  // namespace viaduct::ucx
