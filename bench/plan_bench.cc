// The cost of planning, per index and per run; see the counters.
#include <benchmark/benchmark.h>

#include <string_view>

#include "core/plan.h"
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint64_t kBlock = 4096;
constexpr std::uint64_t kBlocks = 6'500'000;
constexpr std::uint32_t kTaken = 1'000'000;
constexpr std::uint64_t kLocal = std::uint64_t{1} << 40U;
constexpr std::uint64_t kRemote = std::uint64_t{1} << 41U;

// kTaken different blocks, in random order of runs with `together` neighbours each.
Indices indices(std::uint64_t seed, std::uint32_t together) {
  const Indices starts = shuffled(kBlocks / together, seed);
  Indices out;
  out.reserve(kTaken);
  for (std::uint32_t i = 0; out.size() < kTaken; ++i)
    for (std::uint32_t k = 0; k < together; ++k) out.push_back(starts[i] * together + k);
  return out;
}

// One strided run, or one run for each of `layers` that follow one another in memory.
Blocks layered(std::uint64_t base, std::uint64_t layers) {
  std::vector<Run> runs;
  const std::uint64_t each = kBlocks / layers;
  for (std::uint64_t i = 0; i < layers; ++i)
    runs.push_back({base + i * 2 * each * kBlock, kBlock, kBlock, each});
  return must(Blocks::of(std::move(runs)));
}

struct Input {
  Input(std::uint32_t together, std::uint64_t layers)
      : local{layered(kLocal, layers), indices(1, together)},
        remote{layered(kRemote, layers), indices(2, together)},
        pins({{.address = kLocal, .bytes = std::uint64_t{1} << 42U, .slot = 0}}) {}
  Result<core::OpList> plan() const {
    return core::coalesce(OpKind::kWrite, local, remote, pins, pins);
  }
  Selection local, remote;
  core::PinMap pins;
};

void plan(benchmark::State& state, std::uint32_t together, std::uint64_t layers) {
  const Input input(together, layers);
  std::size_t ops = 0;
  for (auto _ : state) {
    auto made = must(input.plan());
    ops = made.ops.size();
    benchmark::DoNotOptimize(made.ops.data());
  }
  state.counters["ops"] = static_cast<double>(ops);
  state.counters["per_index"] = benchmark::Counter(
      kTaken, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(plan, random, 1, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, runs_of_64, 64, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, random_in_80_layers, 1, 80)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, runs_of_64_in_80_layers, 64, 80)->Unit(benchmark::kMillisecond);

void describe(benchmark::State& state) {
  for (auto _ : state) {
    auto made =
        Blocks::strided({.base = kLocal, .stride = 2 * kBlock, .bytes = kBlock, .count = kBlocks});
    benchmark::DoNotOptimize(made);
  }
}
BENCHMARK(describe);

void planAllOfADenseRun(benchmark::State& state) {
  Input input(1, 1);
  input.local.indices.clear();
  input.remote.indices.clear();
  for (auto _ : state) benchmark::DoNotOptimize(input.plan());
}
BENCHMARK(planAllOfADenseRun);

// Two agents of this process, to time whole plans as a caller makes and drops them.
constexpr std::uint64_t kPool = 512U << 20U;
constexpr std::uint32_t kPieces = 16'384;

struct Planner : Pair {
  Planner() : Pair({.backends = {"local"}}, kPool) {}
  Transfer plan(const Selection& local, const Selection& remote) {
    return must(source.agent.plan(OpKind::kWrite, source.peer, local, remote));
  }
};

// Blocks at random places of a pool that do not overlap. Each has its own cell: of its size on the
// grid, otherwise of twice its size with a random place inside.
std::vector<Extent> places(std::uint64_t base, std::uint64_t seed, bool on_a_grid) {
  const std::uint64_t cell = on_a_grid ? kBlock : 2 * kBlock;
  base::Random random(seed);
  std::vector<std::uint32_t> cells(kPool / cell);
  std::iota(cells.begin(), cells.end(), 0U);
  std::vector<Extent> out;
  for (std::uint32_t i = 0; i < kPieces; ++i) {
    std::swap(cells[i], cells[i + random.below(cells.size() - i)]);
    const std::uint64_t shift = on_a_grid ? 0 : random.below(kBlock);
    out.push_back({base + cells[i] * cell + shift, kBlock});
  }
  return out;
}

void fromLists(benchmark::State& state, bool on_a_grid) {
  Planner pair;
  const auto local = places(pair.source.here(), 1, on_a_grid),
             remote = places(pair.source.there, 2, on_a_grid);
  for (auto _ : state) {
    Selection from{must(Blocks::list(local)), {}}, to{must(Blocks::list(remote)), {}};
    benchmark::DoNotOptimize(pair.plan(from, to));
  }
}
BENCHMARK_CAPTURE(fromLists, on_a_grid, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(fromLists, anywhere, false)->Unit(benchmark::kMicrosecond);

void listOnly(benchmark::State& state, bool on_a_grid) {
  const auto extents = places(kLocal, 1, on_a_grid);
  for (auto _ : state) benchmark::DoNotOptimize(*Blocks::list(extents));
}
BENCHMARK_CAPTURE(listOnly, on_a_grid, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(listOnly, anywhere, false)->Unit(benchmark::kMicrosecond);

void byIndex(benchmark::State& state) {
  Planner pair;
  const auto numbers = [&](std::uint64_t seed) {
    Indices out;
    for (const Extent& place : places(0, seed, true))
      out.push_back(static_cast<std::uint32_t>(place.address / kBlock));
    return out;
  };
  const auto pool = [](std::uint64_t base) {
    return Run{.base = base, .bytes = kBlock, .count = kPool / kBlock};
  };
  const Selection from = blocks(pool(pair.source.here()), numbers(1)),
                  to = blocks(pool(pair.source.there), numbers(2));
  for (auto _ : state) benchmark::DoNotOptimize(pair.plan(from, to));
}
BENCHMARK(byIndex)->Unit(benchmark::kMicrosecond);

// `plan_bench --once TOGETHER`: plans a single time, for counting instructions:
//   valgrind --tool=callgrind --toggle-collect='viaduct::core::coalesce*' plan_bench --once 64
int planOnce(std::uint32_t together) { return Input(together, 1).plan().has_value() ? 0 : 1; }

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--once")
    return planOnce(static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
