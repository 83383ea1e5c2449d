#include "base/block_sums.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace viaduct::base {
namespace {

alignas(64) constexpr std::array<std::uint64_t, kStripeWords> kKeys = [] {
  std::array<std::uint64_t, kStripeWords> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = stripeKey(i);
  return out;
}();

std::uint64_t productOf(std::uint64_t x) { return (x & 0xffffffffU) * (x >> 32U); }

StripeSums sumPlain(const std::byte* from, std::size_t stripes) {
  StripeSums out;
  for (; stripes > 0; --stripes, from += kStripeBytes) {
    BlockSums stripe;
    for (std::size_t i = 0; i < kStripeWords; ++i) {
      const std::uint64_t x = loadLittle<std::uint64_t>(from + 8 * i) ^ kKeys[i];
      stripe.plain += x;
      stripe.product += productOf(x);
    }
    out.even += stripe;
    out.falling += out.even;
  }
  return out;
}

#if defined(__x86_64__)
// The sum of a vector's lanes.
template <class Vector>
std::uint64_t totalOf(const Vector& lanes) {
  std::array<std::uint64_t, sizeof(Vector) / sizeof(std::uint64_t)> parts{};
  std::memcpy(parts.data(), &lanes, sizeof lanes);
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
}

// Each lane of a vector has sums of its own, because all words of a stripe have the same weight.
__attribute__((target("avx512f"))) StripeSums sumAvx512(const std::byte* from,
                                                        std::size_t stripes) {
  constexpr std::size_t kVectors = kStripeBytes / sizeof(__m512i);
  __m512i key[kVectors];
  for (std::size_t i = 0; i < kVectors; ++i) key[i] = _mm512_load_si512(kKeys.data() + 8 * i);
  __m512i plain = _mm512_setzero_si512(), product = plain;
  __m512i plain_falling = plain, product_falling = plain;
  for (; stripes > 0; --stripes, from += kStripeBytes) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kVectors; ++i) {
      const __m512i x = _mm512_xor_si512(_mm512_loadu_si512(from + i * sizeof(__m512i)), key[i]);
      plain = _mm512_add_epi64(plain, x);
      // Intrinsics with a mask of all lanes: g++ 12 warns about variables inside those without a
      // mask.
      const __m512i upper = _mm512_maskz_srli_epi64(0xff, x, 32);
      product = _mm512_add_epi64(product, _mm512_maskz_mul_epu32(0xff, x, upper));
    }
    plain_falling = _mm512_add_epi64(plain_falling, plain);
    product_falling = _mm512_add_epi64(product_falling, product);
  }
  return {{totalOf(plain), totalOf(product)}, {totalOf(plain_falling), totalOf(product_falling)}};
}

__attribute__((target("avx2"))) StripeSums sumAvx2(const std::byte* from, std::size_t stripes) {
  constexpr std::size_t kVectors = kStripeBytes / sizeof(__m256i);
  const auto* const key = reinterpret_cast<const __m256i*>(kKeys.data());
  __m256i plain = _mm256_setzero_si256(), product = plain;
  __m256i plain_falling = plain, product_falling = plain;
  for (; stripes > 0; --stripes, from += kStripeBytes) {
    const auto* const words = reinterpret_cast<const __m256i*>(from);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kVectors; ++i) {
      const __m256i x = _mm256_xor_si256(_mm256_loadu_si256(words + i), _mm256_load_si256(key + i));
      plain = _mm256_add_epi64(plain, x);
      product = _mm256_add_epi64(product, _mm256_mul_epu32(x, _mm256_srli_epi64(x, 32)));
    }
    plain_falling = _mm256_add_epi64(plain_falling, plain);
    product_falling = _mm256_add_epi64(product_falling, product);
  }
  return {{totalOf(plain), totalOf(product)}, {totalOf(plain_falling), totalOf(product_falling)}};
}
#endif

// The sums, without weights, of a part of one stripe that begins at word `first` of that stripe.
BlockSums partOfStripe(std::size_t first, std::span<const std::byte> bytes) {
  BlockSums out;
  for (std::size_t i = first; !bytes.empty(); ++i) {
    std::byte word[8] = {};
    const std::size_t size = std::min(bytes.size(), sizeof word);
    std::memcpy(word, bytes.data(), size);
    const std::uint64_t x = loadLittle<std::uint64_t>(word) ^ kKeys[i];
    out.plain += x;
    out.product += productOf(x);
    bytes = bytes.subspan(size);
  }
  return out;
}

BlockSums times(BlockSums sums, std::uint64_t weight) {
  return {sums.plain * weight, sums.product * weight};
}

std::vector<StripeSummer> findSummers() {
  std::vector<StripeSummer> out;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) out.push_back({"avx512", sumAvx512});
  if (__builtin_cpu_supports("avx2")) out.push_back({"avx2", sumAvx2});
#endif
  out.push_back({"plain", sumPlain});
  return out;
}

}  // namespace

std::span<const StripeSummer> stripeSummers() {
  static const std::vector<StripeSummer> all = findSummers();
  return all;
}

BlockSums blockSums(std::uint64_t offset, std::span<const std::byte> bytes) {
  static const StripeSummer best = stripeSummers().front();
  std::uint64_t stripe = offset / kStripeBytes;
  BlockSums out;
  if (const std::size_t into = offset % kStripeBytes; into != 0) {
    const std::size_t head = std::min(kStripeBytes - into, bytes.size());
    out = times(partOfStripe(into / 8, bytes.first(head)), 2 * stripe + 1);
    bytes = bytes.subspan(head);
    ++stripe;
  }
  const std::size_t stripes = bytes.size() / kStripeBytes;
  if (stripes != 0) {
    // `falling` counts stripe i of these n stripes n - i times. So stripe i gets the weight
    // 2 * (stripe + n) + 1 - 2 * (n - i), which is 2 * (stripe + i) + 1.
    const StripeSums whole = best.sum(bytes.data(), stripes);
    out += times(whole.even, 2 * (stripe + stripes) + 1);
    out += times(whole.falling, ~std::uint64_t{1});  // -2
    stripe += stripes;
  }
  out += times(partOfStripe(0, bytes.subspan(stripes * kStripeBytes)), 2 * stripe + 1);
  return out;
}

}  // namespace viaduct::base
