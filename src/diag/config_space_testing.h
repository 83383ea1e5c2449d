// PCI config space for tests. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace viaduct::diag::testing {

// An extended capability; `next` is the offset of the one after it, 0 at the end.
struct ExtendedCapability {
  std::uint16_t id = 0;
  std::uint32_t next = 0;
  std::uint16_t control = 0;  // 16-bit word at offset 6
};

// A config space of 4096 bytes, whose list of extended capabilities starts at 0x100.
inline std::string configSpace(const std::vector<ExtendedCapability>& list) {
  std::string out(4096, '\0');
  std::size_t at = 0x100;
  for (const ExtendedCapability& one : list) {
    const std::uint32_t header = one.id | (1U << 16U) | (one.next << 20U);
    for (std::size_t i = 0; i < 4; ++i)
      out[at + i] = static_cast<char>((header >> (8 * i)) & 0xffU);
    out[at + 6] = static_cast<char>(one.control & 0xffU);
    out[at + 7] = static_cast<char>(one.control >> 8U);
    at = one.next;
  }
  return out;
}

}  // namespace viaduct::diag::testing
