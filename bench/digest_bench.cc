// The rate of digests on one core, beside a plain read of the same memory with loads of the same
// width, in turns. Prints GB/s (median of the rounds) and the median of the rounds' ratios.
//   digest_bench [ROUNDS]
// Then checked reads beside unchecked ones: 64 MiB between two agents of this process.
#include <fmt/format.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "base/block_sums.h"
#include "base/random.h"
#include "base/sizes.h"
#include "median.h"
#include "must.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;
using viaduct::base::kGiB;
using viaduct::base::kKiB;
using viaduct::base::kMiB;
using viaduct::base::StripeSummer;

std::uint64_t sink = 0;  // keeps results in use

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
  std::size_t room;  // the blocks lie in so much memory, in random order
};
constexpr std::array kRows{
    Row{"4 KiB, in the first cache", 4 * kKiB, 4 * kKiB},
    Row{"64 KiB, in the second cache", 64 * kKiB, 64 * kKiB},
    Row{"1 MiB, in the caches", kMiB, kMiB},
    Row{"4 KiB, anywhere in 1 GiB", 4 * kKiB, kGiB},
    Row{"64 KiB, anywhere in 1 GiB", 64 * kKiB, kGiB},
    Row{"1 GiB", kGiB, kGiB},
};

class Bench {
 public:
  explicit Bench(int rounds) : rounds_(rounds), memory_(kGiB / 8) {
    viaduct::base::Random random(1);
    for (std::uint64_t& word : memory_) word = random.next();
  }

  void run(const Row& row, const StripeSummer& summer) {
    order_.resize(row.room / row.block);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    viaduct::base::Random random(2);
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[random.below(i)]);
    const Read read = readLike(summer.name);
    std::vector<double> reads, sums, ratios;
    for (int i = 0; i < rounds_; ++i) {
      reads.push_back(rateOf(row, [&](const std::byte* from) { sink += read(from, row.block); }));
      sums.push_back(rateOf(row, [&](const std::byte* from) {
        sink += summer.sum(from, row.block / viaduct::base::kStripeBytes).even.product;
      }));
      ratios.push_back(sums.back() / reads.back());
    }
    fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.2f} |\n", row.what, summer.name, median(reads),
               median(sums), median(ratios));
  }

 private:
  template <class F>
  double rateOf(const Row& row, F work) const {
    const std::size_t turns = std::max<std::size_t>(1, kGiB / row.room / 2);
    const auto* const memory = reinterpret_cast<const std::byte*>(memory_.data());
    const auto begun = Clock::now();
    for (std::size_t turn = 0; turn < turns; ++turn)
      for (const std::size_t block : order_) work(memory + block * row.block);
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    return static_cast<double>(turns * order_.size() * row.block) / seconds / 1e9;
  }

  const int rounds_;
  std::vector<std::uint64_t> memory_;
  std::vector<std::size_t> order_;
};

void compareReads(const char* backend, std::uint64_t block, int rounds) {
  using namespace std::chrono_literals;
  using namespace viaduct;
  constexpr std::uint64_t kRoom = 64 * kMiB;
  Agent a = must(Agent::open({.name = "a", .backends = {backend}}));
  Agent b = must(Agent::open({.name = "b", .backends = {backend}}));
  const Peer peer = must(a.importCard(b.exportCard()));
  must(peer.ready(10s));
  Pin here = must(a.allocate(kRoom)), there = must(b.allocate(kRoom, {.label = "there"}));
  must(peer.waitPin("there", 10s));
  base::Random random(3);
  for (std::byte& one : there.bytes()) one = static_cast<std::byte>(random.next());
  const auto blocksOf = [&](const Pin& pin) {
    return Selection{must(
        Blocks::strided({.base = pin.info().address, .bytes = block, .count = kRoom / block}))};
  };
  Transfer read = must(a.plan(OpKind::kRead, peer, blocksOf(here), blocksOf(there)));
  std::vector<double> plain, checked, ratios, making;
  for (int i = 0; i < rounds; ++i) {
    const auto secondsOf = [](auto work) {
      const auto begun = Clock::now();
      work();
      return std::chrono::duration<double>(Clock::now() - begun).count();
    };
    std::vector<Digest> digests;
    making.push_back(secondsOf([&] { digests = must(b.digestBlocks(blocksOf(there))); }));
    const auto post = [&](const PostOptions& options) {
      must(read.post(options));
      must(read.wait());
    };
    plain.push_back(secondsOf([&] { post({}); }));
    checked.push_back(secondsOf([&] { post({.digests = digests}); }));
    ratios.push_back(checked.back() / plain.back());
  }
  const auto rate = [](double seconds) { return static_cast<double>(kRoom) / seconds / 1e9; };
  fmt::print("| {} | {} KiB | {:.1f} | {:.1f} | {:.2f} | {:.1f} |\n", backend, block / kKiB,
             rate(median(plain)), rate(median(checked)), median(ratios), rate(median(making)));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  Bench bench(rounds);
  fmt::print(
      "| blocks | instructions | read, GB/s | digest, GB/s | ratio |\n|---|---|---|---|---|\n");
  for (const StripeSummer& summer : viaduct::base::stripeSummers())
    for (const Row& row : kRows) bench.run(row, summer);
  fmt::print(
      "\n| backend | blocks | read, GB/s | checked read, GB/s | time, checked / plain | "
      "digestBlocks(), GB/s |\n|---|---|---|---|---|---|\n");
  for (const char* backend : {"local", "tcp"})
    for (const std::uint64_t block : {4 * kKiB, 64 * kKiB}) compareReads(backend, block, rounds);
  return sink == 1 ? 2 : 0;  // never 2
}
