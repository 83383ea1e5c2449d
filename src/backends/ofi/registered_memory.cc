#include "backends/ofi/registered_memory.h"

#include <fmt/format.h>

#include <utility>

#include "base/random.h"

namespace viaduct::ofi {

Result<std::uint64_t> drawnKey(std::size_t key_bytes) {
  VIADUCT_TRY(const std::uint64_t key, base::secretNumber());
  return key_bytes >= sizeof key ? key : key & ((std::uint64_t{1} << (8 * key_bytes)) - 1);
}

int registerWith(fid_domain& domain, const MemoryRange& range, std::uint64_t key,
                 Fid<fid_mr>& region) {
  std::uint64_t access = FI_WRITE;  // for our own WRITEs
  if (range.writable) access |= FI_READ;
  if (range.remote_read) access |= FI_REMOTE_READ;
  if (range.remote_write) access |= FI_REMOTE_WRITE;
  const auto number = static_cast<std::uintptr_t>(range.address);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): MemoryRange has the address as a number
  const auto* const start = reinterpret_cast<const void*>(number);
  fid_mr* made = nullptr;
  const int rc = fi_mr_reg(&domain, start, range.bytes, access, 0, key, 0, &made, nullptr);
  if (rc == 0) region.reset(made);
  return rc;
}

Error cannotRegister(std::string call, int status, const MemoryRange& range,
                     const std::string& device) {
  Error why = ofiError(Code::kDevice, std::move(call), status, device);
  why.detail += fmt::format(" ({} bytes at {:#x})", range.bytes, range.address);
  if (status == -FI_ENOMEM) why.remedy = "check `ulimit -l`: registered memory is locked";
  return why;
}

}  // namespace viaduct::ofi
