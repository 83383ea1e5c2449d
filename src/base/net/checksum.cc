#include "base/net/checksum.h"

#include <bit>
#include <cstring>

namespace viaduct::base {
namespace {

constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio: well mixed bits

std::uint64_t step(std::uint64_t sum, std::uint64_t word) {
  sum = (sum ^ word) * kOdd;
  return sum ^ (sum >> 32U);
}

std::uint64_t loadWord(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

}  // namespace

Checksum& Checksum::add(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  const auto one = [&] {
    word_ |= std::to_integer<std::uint64_t>(*at++) << (8 * (bytes_++ % 8));
    if (bytes_ % 8 == 0) sum_ = step(sum_, word_), word_ = 0;
  };
  while (at != end && bytes_ % 8 != 0) one();
  for (; end - at >= 8; at += 8, bytes_ += 8) sum_ = step(sum_, loadWord(at));
  while (at != end) one();
  return *this;
}

std::uint64_t Checksum::value() const { return step(step(sum_, word_), bytes_); }

}  // namespace viaduct::base
