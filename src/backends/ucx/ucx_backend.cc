// The backend that moves bytes by UCX. NOTES.md has its guarantees, and the limits of UCX.
#include "backends/ucx/choose.h"
#include "base/log.h"

namespace viaduct::ucx {

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  VIADUCT_TRY(auto chosen, choose(context.settings));
  static std::atomic_flag warned;
  if (!chosen.can.rdma)
    base::logOnce(
        warned, base::LogLevel::kWarning,
        "backend ucx runs over TCP: UCX accepts every process that reaches its ports, and may end "
        "this process if a connection breaks during set-up; the tcp backend does neither");
  return move::FabricBackend::open(context, std::move(chosen));
}

}  // namespace viaduct::ucx
