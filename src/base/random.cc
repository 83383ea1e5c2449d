#include "base/random.h"

#include <sys/random.h>

#include <array>
#include <bit>
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

Result<std::uint64_t> secretNumber() {
  std::array<std::uint8_t, 8> bytes{};
  VIADUCT_CHECK(fillSecret(bytes));
  return std::bit_cast<std::uint64_t>(bytes);
}

}  // namespace viaduct::base
