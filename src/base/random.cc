#include "base/random.h"

#include <sys/random.h>

#include <cerrno>

namespace viaduct::base {

Status fillSecret(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return systemError(Code::kDevice, "getrandom", errno);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return Ok{};
}

}  // namespace viaduct::base
