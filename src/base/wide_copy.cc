#include "base/wide_copy.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace viaduct::base {
namespace {

using Copy = void (*)(std::byte*, const std::byte*, std::size_t);
struct Choice {
  const char* name;
  Copy copy;
};

[[maybe_unused]] void copyPlain(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#if defined(__x86_64__)
constexpr std::size_t kLine = 64;
// Shorter pieces gain nothing, because too much of them is partial cache lines.
constexpr std::size_t kLeastWide = 512;

// Copies up to the first whole cache line of `to`, and returns the number of bytes.
std::size_t copyHead(std::byte* to, const std::byte* from) {
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  std::memcpy(to, from, head);
  return head;
}

__attribute__((target("avx512f"))) void copyAvx512(std::byte* to, const std::byte* from,
                                                   std::size_t bytes) {
  if (bytes < kLeastWide) return copyPlain(to, from, bytes);
  std::size_t at = copyHead(to, from);
  for (; at + 4 * kLine <= bytes; at += 4 * kLine) {
    const __m512i a = _mm512_loadu_si512(from + at);
    const __m512i b = _mm512_loadu_si512(from + at + kLine);
    const __m512i c = _mm512_loadu_si512(from + at + 2 * kLine);
    const __m512i d = _mm512_loadu_si512(from + at + 3 * kLine);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), a);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at + kLine), b);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at + 2 * kLine), c);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at + 3 * kLine), d);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

__attribute__((target("avx2"))) void copyAvx2(std::byte* to, const std::byte* from,
                                              std::size_t bytes) {
  if (bytes < kLeastWide) return copyPlain(to, from, bytes);
  constexpr std::size_t kHalf = kLine / 2;
  std::size_t at = copyHead(to, from);
  for (; at + 2 * kLine <= bytes; at += 2 * kLine) {
    const auto load = [&](std::size_t skip) __attribute__((target("avx2"))) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + skip));
    };
    const __m256i a = load(0), b = load(kHalf), c = load(2 * kHalf), d = load(3 * kHalf);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + kHalf), b);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + 2 * kHalf), c);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + 3 * kHalf), d);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

Choice choose() {
  if (__builtin_cpu_supports("avx512f")) return {"avx512", copyAvx512};
  if (__builtin_cpu_supports("avx2")) return {"avx2", copyAvx2};
  return {"memcpy", copyPlain};
}
#else
Choice choose() { return {"memcpy", copyPlain}; }
#endif

const Choice kChoice = choose();

}  // namespace

void copyWide(std::byte* to, const std::byte* from, std::size_t bytes) {
  kChoice.copy(to, from, bytes);
}

void finishWide() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

const char* wideCopyName() { return kChoice.name; }

}  // namespace viaduct::base
