// The rate of digests on one core, beside a plain read of the same memory with loads of the same
// width, in turns. Prints GB/s (median of the rounds) and the median of the rounds' ratios.
//   digest_bench [ROUNDS]
// Then compares checked reads with unchecked ones: 64 MiB between two agents of this process.
#include <cstring>

#include "base/block_sums.h"
#include "base/sizes.h"
#include "harness/agents.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using base::kGiB;
using base::kKiB;
using base::kMiB;

std::uint64_t sink = 0;  // keeps the compiler from dropping unused results

std::uint64_t readPlain(const std::byte* from, std::size_t bytes) {
  std::array<std::uint64_t, 8> all{};
  for (std::size_t at = 0; at < bytes; at += sizeof all)
#pragma GCC unroll 8
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + at + 8 * i, sizeof word);
      all[i] |= word;
    }
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}
#if defined(__x86_64__)
__attribute__((target("avx512f"))) std::uint64_t readAvx512(const std::byte* from,
                                                            std::size_t bytes) {
  __m512i all[4] = {};
  for (std::size_t at = 0; at < bytes; at += sizeof all)
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i)
      all[i] = _mm512_or_si512(all[i], _mm512_loadu_si512(from + at + i * sizeof all[0]));
  std::uint64_t parts[32];
  std::memcpy(parts, all, sizeof parts);
  return std::accumulate(std::begin(parts), std::end(parts), std::uint64_t{0});
}
__attribute__((target("avx2"))) std::uint64_t readAvx2(const std::byte* from, std::size_t bytes) {
  __m256i all[8] = {};
  for (std::size_t at = 0; at < bytes; at += sizeof all)
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i)
      all[i] = _mm256_or_si256(
          all[i],
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + i * sizeof all[0])));
  std::uint64_t parts[32];
  std::memcpy(parts, all, sizeof parts);
  return std::accumulate(std::begin(parts), std::end(parts), std::uint64_t{0});
}
#endif

using Read = std::uint64_t (*)(const std::byte* from, std::size_t bytes);
Read readLike(std::string_view name) {
#if defined(__x86_64__)
  if (name == "avx512") return readAvx512;
  if (name == "avx2") return readAvx2;
#endif
  static_cast<void>(name);
  return readPlain;
}

struct Row {
  const char* what;
  std::size_t block;
  std::size_t room;  // bytes of the memory in which the blocks lie, in random order
};
constexpr std::array kRows{
    Row{"4 KiB, in the first cache", 4 * kKiB, 4 * kKiB},
    Row{"64 KiB, in the second cache", 64 * kKiB, 64 * kKiB},
    Row{"1 MiB, in the caches", kMiB, kMiB},
    Row{"4 KiB, anywhere in 1 GiB", 4 * kKiB, kGiB},
    Row{"64 KiB, anywhere in 1 GiB", 64 * kKiB, kGiB},
    Row{"1 GiB", kGiB, kGiB},
};

// Gigabytes a second of `work` over all blocks of the row, in random order.
template <class Work>
double rateOf(const Row& row, const std::vector<std::uint64_t>& memory, const Indices& order,
              const Work& work) {
  const auto* const begin = reinterpret_cast<const std::byte*>(memory.data());
  const double seconds = secondsPerCall(std::max<std::size_t>(1, kGiB / row.room / 2), [&] {
    for (const std::size_t block : order) work(begin + block * row.block);
  });
  return static_cast<double>(row.room) / seconds / 1e9;
}

void compareSums(int rounds) {
  std::vector<std::uint64_t> memory(kGiB / sizeof(std::uint64_t));
  base::Random random(1);
  for (std::uint64_t& word : memory) word = random.next();
  Table table({words("blocks", 28), words("instructions", 12), figure("read, GB/s", 1),
               figure("digest, GB/s", 1), figure("ratio", 2)});
  for (const base::StripeSummer& summer : base::stripeSummers())
    for (const Row& row : kRows) {
      const Indices order = shuffled(row.room / row.block, 2);
      const Read read = readLike(summer.name);
      const auto sum = [&](const std::byte* from) {
        sink += summer.sum(from, row.block / base::kStripeBytes).even.product;
      };
      const auto look = [&](const std::byte* from) { sink += read(from, row.block); };
      const auto [reads, sums] =
          inTurns({rounds}, {[&](int) { return rateOf(row, memory, order, look); },
                             [&](int) { return rateOf(row, memory, order, sum); }});
      table.row(row.what, summer.name, reads, sums, sums / reads);
    }
}

void compareReads(Table& table, const char* backend, std::uint64_t block, int rounds) {
  constexpr std::uint64_t kRoom = 64 * kMiB;
  Pair pair({.backends = {backend}}, kRoom);
  const Target& there = pair.target;
  base::Random random(3);
  for (std::byte& one : there.memory.bytes()) one = static_cast<std::byte>(random.next());
  const Run all{.bytes = block, .count = kRoom / block};
  Transfer read = pair.source.plan(OpKind::kRead, all);
  std::vector<Digest> digests;
  const auto [making, plain, checked] = inTurns(
      {rounds}, {[&](int) {
                   return secondsOf([&] {
                     digests = must(there.agent.digestBlocks(
                         blocks({.base = there.here(), .bytes = all.bytes, .count = all.count})));
                   });
                 },
                 [&](int) { return secondsOf([&] { postAndWait(read); }); },
                 [&](int) { return secondsOf([&] { postAndWait(read, {.digests = digests}); }); }});
  constexpr double kGigabytes = kRoom / 1e9;
  table.row(backend, block / kKiB, kGigabytes / plain, kGigabytes / checked, checked / plain,
            kGigabytes / making);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "digest_bench [ROUNDS]");
  const int rounds = given.number(0, 9);
  compareSums(rounds);
  fmt::print("\n");
  Table table({words("backend", 8), figure("blocks, KiB", 0), figure("read, GB/s", 1),
               figure("checked read, GB/s", 1), figure("time, checked / plain", 2),
               figure("digestBlocks(), GB/s", 1)});
  for (const char* backend : {"local", "tcp"})
    for (const std::uint64_t block : {4 * kKiB, 64 * kKiB})
      compareReads(table, backend, block, rounds);
  return sink == 1 ? 2 : 0;  // never 2
}
