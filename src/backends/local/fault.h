// The reason why a chunk was not copied, small enough for one atomic word. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>

namespace viaduct::local {

struct Fault {
  enum class Cause : std::uint8_t {
    kNone,
    kCancelled,
    kClosed,          // our end of the link was closed
    kFenced,          // the peer has closed its end
    kWithdrawnHere,   // the local registration is gone
    kWithdrawnThere,  // the peer's registration is gone
    kOutside,         // beyond the peer's registration
    kPeerDead,
    kRead,   // process_vm_readv failed with os_errno
    kWrite,  // process_vm_writev failed with os_errno
  };
  Cause kind = Cause::kNone;
  int os_errno = 0;
  explicit operator bool() const { return kind != Cause::kNone; }

  std::uint64_t packed() const {
    return static_cast<std::uint64_t>(kind) << 32U | static_cast<std::uint32_t>(os_errno);
  }
  static Fault unpack(std::uint64_t word) {
    return {static_cast<Cause>(word >> 32U), static_cast<int>(word & 0xffffffffU)};
  }
};

Error errorOf(Fault fault, const std::string& peer);

}  // namespace viaduct::local
