// A fast checksum against accidents, not against people. Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace viaduct::base {

// Over 8-byte words, whatever the parts that the bytes are added in. Each step is a bijection of
// the sum, so any change within one word is seen for certain. docs/wire.md gives the definition.
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
