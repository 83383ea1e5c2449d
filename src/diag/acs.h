// Access control services (ACS) of PCI bridges, from their config space. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "diag/node.h"

namespace viaduct::diag {

// The control word of ACS. A bridge with one of the redirect bits sends traffic between its
// devices up to the CPU.
struct AcsControl {
  enum class State : std::uint8_t {
    kSeen,    // `word` is the value that was read
    kNone,    // the function has no ACS
    kHidden,  // the kernel shows only 64 bytes, or the list of capabilities breaks off
  };
  State state = State::kHidden;
  std::uint16_t word = 0;
  bool redirects() const;    // ReqRedir or CmpltRedir
  std::string text() const;  // "SrcValid+ TransBlk- ReqRedir+ ...", as lspci writes it
};

// Reads the contents of /sys/bus/pci/devices/<address>/config.
AcsControl acsOf(std::string_view config);
AcsControl acsControl(const Tree& tree, const std::string& folder);

}  // namespace viaduct::diag
