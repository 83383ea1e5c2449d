// A fast checksum against accidents, not against attacks. Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace viaduct::base {

// Works on 8-byte words, independently of how the bytes are split into calls. Each step is a
// bijection of the sum, so it always detects a change within one word. docs/wire.md gives the
// definition.
class Checksum {
 public:
  Checksum& add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t word_ = 0;  // the bytes of an unfinished word
  std::uint64_t bytes_ = 0;
};

}  // namespace viaduct::base
