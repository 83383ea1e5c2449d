#include "measure/workload/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/random.h"

namespace viaduct::measure {
namespace {

// A word is its number times an odd constant, masked by the seed. The number has 16 bits of epoch
// and 48 bits of position. The next word's product needs only one addition, which vectorises. A
// found word can be decoded.
constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
constexpr unsigned kPositionBits = 48;
constexpr std::uint64_t kPositionMask = (std::uint64_t{1} << kPositionBits) - 1;
constexpr std::uint64_t kGroup = 64;  // words in one loop of constant length

constexpr std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t x = odd;  // an inverse in the lowest 3 bits; each step doubles the correct bits
  for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
  return x;
}
constexpr std::uint64_t kInverse = inverse(kOdd);
static_assert(kOdd * kInverse == 1);

std::uint64_t maskOf(const Pattern& p) { return base::Random(p.seed).next(); }
std::uint64_t wordsPerBlock(const Pattern& p) {
  return (p.block_bytes + kWordBytes - 1) / kWordBytes;
}

std::uint64_t positionOf(const Pattern& p, std::uint64_t block, std::uint64_t offset) {
  return block * wordsPerBlock(p) + offset / kWordBytes;
}

std::uint64_t numberOf(const Pattern& p, std::uint64_t block, std::uint64_t offset) {
  return p.epoch << kPositionBits | (positionOf(p, block, offset) & kPositionMask);
}

std::uint64_t load(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, kWordBytes);
  return word;
}

// The place of a word with this pattern's seed.
struct Place {
  std::uint64_t epoch, block, offset;
};
std::optional<Place> placeOf(const Pattern& p, std::uint64_t word) {
  const std::uint64_t number = (word ^ maskOf(p)) * kInverse;
  const std::uint64_t position = number & kPositionMask;
  const Place place{number >> kPositionBits, position / wordsPerBlock(p),
                    position % wordsPerBlock(p) * kWordBytes};
  if (place.block >= p.blocks || place.epoch == 0 || place.epoch > p.epoch) return std::nullopt;
  return place;
}

// The keys of one position for the two sums. The next position's keys follow by an addition.
struct SumKeys {
  static constexpr std::uint64_t kFirstStep = 0xd1342543de82ef95U,
                                 kSecondStep = 0xaf251af3b0f025b5U;
  std::uint64_t first, second;
  void step(std::uint64_t words) {
    first += words * kFirstStep;
    second += words * kSecondStep;
  }
};
SumKeys keysOf(std::uint64_t key, std::uint64_t position) {
  base::Random random(key);
  SumKeys out{random.next(), random.next()};
  out.step(position);
  return out;
}

// Adds the key to the word and multiplies the halves of the sum. Two different words have the same
// product only for one key in 2^32.
[[gnu::always_inline]] inline std::uint64_t productOf(std::uint64_t word, std::uint64_t key) {
  constexpr std::uint64_t kLow = 0xffffffffU;
  const std::uint64_t keyed = word + key;
  return (keyed & kLow) * (keyed >> 32U);
}

// The loops over all words are compiled for several vector widths. So a check costs no more than
// the copy that it checks (docs/measured/measuring.md).
[[gnu::always_inline]] inline void fillGroups(std::byte* at, std::uint64_t groups,
                                              std::uint64_t product, std::uint64_t mask) {
  for (; groups > 0; --groups, at += kGroup * kWordBytes, product += kGroup * kOdd)
    for (std::uint64_t i = 0; i < kGroup; ++i) {
      const std::uint64_t word = (product + i * kOdd) ^ mask;
      std::memcpy(at + i * kWordBytes, &word, kWordBytes);
    }
}
// Returns the number of groups before the first group with a wrong word.
[[gnu::always_inline]] inline std::uint64_t rightGroups(const std::byte* at, std::uint64_t groups,
                                                        std::uint64_t product, std::uint64_t mask) {
  for (std::uint64_t g = 0; g < groups; ++g, at += kGroup * kWordBytes, product += kGroup * kOdd) {
    std::uint64_t different = 0;
    for (std::uint64_t line = 0; line < kGroup * kWordBytes; line += 64)
      __builtin_prefetch(at + 4 * kGroup * kWordBytes + line);
    for (std::uint64_t i = 0; i < kGroup; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + i * kWordBytes, kWordBytes);
      different |= word ^ (product + i * kOdd) ^ mask;
    }
    if (different != 0) return g;
  }
  return groups;
}

[[gnu::always_inline]] inline void addGroups(const std::byte* at, std::uint64_t groups,
                                             SumKeys keys, WordSum& sum) {
  for (; groups > 0; --groups, at += kGroup * kWordBytes, keys.step(kGroup)) {
    std::uint64_t first = 0, second = 0;
    for (std::uint64_t i = 0; i < kGroup; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + i * kWordBytes, kWordBytes);
      first += productOf(word, keys.first + i * SumKeys::kFirstStep);
      second += productOf(word, keys.second + i * SumKeys::kSecondStep);
    }
    sum.first += first;
    sum.second += second;
    sum.words += kGroup;
  }
}

using Fill = void (*)(std::byte*, std::uint64_t, std::uint64_t, std::uint64_t);
using Right = std::uint64_t (*)(const std::byte*, std::uint64_t, std::uint64_t, std::uint64_t);
using Add = void (*)(const std::byte*, std::uint64_t, SumKeys, WordSum&);
struct Loops {
  Fill fill;
  Right right;
  Add add;
};

void fillPlain(std::byte* at, std::uint64_t groups, std::uint64_t product, std::uint64_t mask) {
  fillGroups(at, groups, product, mask);
}
std::uint64_t rightPlain(const std::byte* at, std::uint64_t groups, std::uint64_t product,
                         std::uint64_t mask) {
  return rightGroups(at, groups, product, mask);
}
void addPlain(const std::byte* at, std::uint64_t groups, SumKeys keys, WordSum& sum) {
  addGroups(at, groups, keys, sum);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void fillAvx2(std::byte* at, std::uint64_t groups, std::uint64_t product,
                                      std::uint64_t mask) {
  fillGroups(at, groups, product, mask);
}
[[gnu::target("avx2")]] std::uint64_t rightAvx2(const std::byte* at, std::uint64_t groups,
                                                std::uint64_t product, std::uint64_t mask) {
  return rightGroups(at, groups, product, mask);
}
[[gnu::target("avx2")]] void addAvx2(const std::byte* at, std::uint64_t groups, SumKeys keys,
                                     WordSum& sum) {
  addGroups(at, groups, keys, sum);
}
#endif

const Loops& loops() {
#if defined(__x86_64__)
  static const Loops chosen = __builtin_cpu_supports("avx2") != 0
                                  ? Loops{fillAvx2, rightAvx2, addAvx2}
                                  : Loops{fillPlain, rightPlain, addPlain};
#else
  static const Loops chosen{fillPlain, rightPlain, addPlain};
#endif
  return chosen;
}

std::uint64_t firstWrongByte(const std::byte* found, const std::byte* wanted, std::uint64_t bytes) {
  return static_cast<std::uint64_t>(std::mismatch(found, found + bytes, wanted).first - found);
}

}  // namespace

std::string Pattern::describe(std::span<const std::byte> found, std::uint64_t block,
                              std::uint64_t offset) const {
  if (found.size() < kWordBytes) return "wrong bytes in the last, partial word";
  const std::uint64_t word = load(found.data());
  if (word == 0) return "zeros: no data arrived here";
  if (const auto place = placeOf(*this, word)) {
    const char* age = place->epoch == epoch ? "" : ", from an earlier epoch";
    if (place->block != block)
      return fmt::format("swapped: the word belongs to block {} offset {}{}", place->block,
                         place->offset, age);
    if (place->offset != offset)
      return fmt::format("shifted: the word belongs to offset {} of the same block{}",
                         place->offset, age);
    return fmt::format("stale: the word belongs to epoch {}, not {}", place->epoch, epoch);
  }
  for (std::uint64_t by = 1; by < kWordBytes && by + kWordBytes <= found.size(); ++by)
    if (const auto place = placeOf(*this, load(found.data() + by)))
      return fmt::format("shifted by {} bytes: block {} offset {} begins inside this word", by,
                         place->block, place->offset);
  return fmt::format("foreign bytes: the pattern does not contain the word {:#018x}", word);
}

void Pattern::fill(std::span<std::byte> memory, std::uint64_t block, std::uint64_t offset) const {
  const std::uint64_t mask = maskOf(*this);
  const std::uint64_t product = numberOf(*this, block, offset) * kOdd;
  const std::uint64_t words = memory.size() / kWordBytes, groups = words / kGroup;
  if (groups != 0) loops().fill(memory.data(), groups, product, mask);
  const auto put = [&](std::uint64_t i, std::uint64_t bytes) {
    const std::uint64_t word = (product + i * kOdd) ^ mask;
    std::memcpy(memory.data() + i * kWordBytes, &word, bytes);
  };
  for (std::uint64_t i = groups * kGroup; i < words; ++i) put(i, kWordBytes);
  put(words, memory.size() % kWordBytes);
}

std::optional<Mismatch> Pattern::verify(std::span<const std::byte> memory, std::uint64_t block,
                                        std::uint64_t offset) const {
  const std::uint64_t mask = maskOf(*this);
  std::uint64_t product = numberOf(*this, block, offset) * kOdd;
  const std::uint64_t groups = memory.size() / (kGroup * kWordBytes);
  const std::uint64_t right = groups == 0 ? 0 : loops().right(memory.data(), groups, product, mask);
  product += right * kGroup * kOdd;
  // The remaining bytes are less than a group, or begin with the wrong group.
  std::array<std::byte, kGroup * kWordBytes> wanted;
  for (std::uint64_t done = right * wanted.size(); done < memory.size(); done += wanted.size()) {
    const std::byte* at = memory.data() + done;
    const std::uint64_t bytes = std::min<std::uint64_t>(wanted.size(), memory.size() - done);
    for (std::uint64_t i = 0; i * kWordBytes < bytes; ++i) {
      const std::uint64_t word = (product + i * kOdd) ^ mask;
      std::memcpy(wanted.data() + i * kWordBytes, &word, kWordBytes);
    }
    product += kGroup * kOdd;
    if (std::memcmp(at, wanted.data(), bytes) == 0) continue;
    const std::uint64_t wrong = done + firstWrongByte(at, wanted.data(), bytes);
    const std::uint64_t aligned = wrong / kWordBytes * kWordBytes;
    return Mismatch{block, wrong, describe(memory.subspan(aligned), block, offset + aligned)};
  }
  return std::nullopt;
}

void Pattern::add(WordSum& sum, std::span<const std::byte> memory, std::uint64_t key,
                  std::uint64_t block, std::uint64_t offset) const {
  SumKeys keys = keysOf(key, positionOf(*this, block, offset));
  const std::uint64_t groups = memory.size() / (kGroup * kWordBytes);
  loops().add(memory.data(), groups, keys, sum);
  keys.step(groups * kGroup);
  for (std::uint64_t at = groups * kGroup * kWordBytes; at < memory.size(); at += kWordBytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, memory.data() + at, std::min(kWordBytes, memory.size() - at));
    sum.first += productOf(word, keys.first);
    sum.second += productOf(word, keys.second);
    ++sum.words;
    keys.step(1);
  }
}

}  // namespace viaduct::measure
