// The cost of planning between two layouts of a KV cache, and of taking blocks of the plan.
#include <benchmark/benchmark.h>

#include <array>

#include "core/plan.h"
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint32_t kTokens = 8192;
constexpr std::uint64_t kPoolTokens = 1U << 20U;
constexpr std::uint64_t kSource = std::uint64_t{1} << 40U, kDestination = std::uint64_t{1} << 44U;

KvLayout layout(std::uint32_t tp, std::uint32_t block_tokens, KvOrder order, std::uint64_t base) {
  KvLayout out = kvModel("Llama-3.1-8B")->layout;
  out.tp = tp;
  out.order = order;
  out.groups[0].block_tokens = block_tokens;
  return must(arrangeKv(std::move(out), KvArrangement::kApart, base, kPoolTokens / block_tokens));
}

// A request of 8,192 tokens in one kind of resharding, with blocks in order or in random places.
struct Case {
  Case(std::uint32_t to_tp, std::uint32_t to_tokens, KvOrder order, bool in_order)
      : source(layout(4, 16, order, kSource)),
        destination(layout(to_tp, to_tokens, order, kDestination)),
        reshard(*KvReshard::plan(source, destination)),
        blocks{KvBlocks{ids(1, 16, in_order), ids(2, to_tokens, in_order)}} {}

  static Indices ids(std::uint64_t seed, std::uint32_t block_tokens, bool in_order) {
    Indices out(kPoolTokens / block_tokens);
    std::iota(out.begin(), out.end(), 0U);
    if (!in_order) shuffle(out, seed);
    out.resize(kTokens / block_tokens);
    return out;
  }

  KvLayout source, destination;
  KvReshard reshard;
  std::array<KvBlocks, 1> blocks;
};

void plan(benchmark::State& state, std::uint32_t to_tp, std::uint32_t to_tokens, KvOrder order) {
  const Case one(to_tp, to_tokens, order, true);
  for (auto _ : state) benchmark::DoNotOptimize(KvReshard::plan(one.source, one.destination));
}
BENCHMARK_CAPTURE(plan, hnd, 8, 64, KvOrder::kHnd)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, nhd, 8, 64, KvOrder::kNhd)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, same, 4, 16, KvOrder::kNhd)->Unit(benchmark::kMicrosecond);

void take(benchmark::State& state, std::uint32_t to_tp, std::uint32_t to_tokens, KvOrder order,
          bool in_order) {
  const Case one(to_tp, to_tokens, order, in_order);
  for (auto _ : state) {
    auto taken = must(one.reshard.select(one.blocks));
    state.counters["pieces"] = static_cast<double>(taken.source.blocks.count());
    benchmark::DoNotOptimize(taken);
  }
}
BENCHMARK_CAPTURE(take, hnd_in_order, 8, 64, KvOrder::kHnd, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(take, hnd_random, 8, 64, KvOrder::kHnd, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(take, nhd_in_order, 8, 64, KvOrder::kNhd, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(take, nhd_random, 8, 64, KvOrder::kNhd, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(take, same_in_order, 4, 16, KvOrder::kNhd, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(take, same_random, 4, 16, KvOrder::kNhd, false)->Unit(benchmark::kMicrosecond);

// The next part of Agent::plan: it makes one op for each piece.
void coalesce(benchmark::State& state, std::uint32_t to_tp, std::uint32_t to_tokens, KvOrder order,
              bool in_order) {
  const Case one(to_tp, to_tokens, order, in_order);
  const auto taken = must(one.reshard.select(one.blocks));
  const core::PinMap pins({{.address = 0, .bytes = std::uint64_t{1} << 62U, .slot = 0}});
  for (auto _ : state) {
    auto ops = must(core::coalesce(OpKind::kRead, taken.destination, taken.source, pins, pins));
    state.counters["ops"] = static_cast<double>(ops.ops.size());
    benchmark::DoNotOptimize(ops);
  }
}
BENCHMARK_CAPTURE(coalesce, hnd_in_order, 8, 64, KvOrder::kHnd, true)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(coalesce, hnd_random, 8, 64, KvOrder::kHnd, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(coalesce, same_in_order, 4, 16, KvOrder::kNhd, true)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(coalesce, same_random, 4, 16, KvOrder::kNhd, false)
    ->Unit(benchmark::kMicrosecond);

// Makes the same selections from lists of addresses, which Blocks::list checks for overlaps.
void listOfPieces(benchmark::State& state) {
  const Case one(8, 64, KvOrder::kHnd, false);
  const auto taken = must(one.reshard.select(one.blocks));
  std::vector<Extent> here, there;
  for (std::uint64_t i = 0; i < taken.source.blocks.count(); ++i) {
    there.push_back(taken.source.blocks[i]);
    here.push_back(taken.destination.blocks[i]);
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(Blocks::list(here));
    benchmark::DoNotOptimize(Blocks::list(there));
  }
}
BENCHMARK(listOfPieces)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
