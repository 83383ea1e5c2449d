// The cost of asking the kernel about memory, and of letting it copy: docs/measured/memory.md.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "base/checked_copy.h"
#include "base/memory_access.h"
#include "harness/processes.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

// Pages of which every second one is read-only, so that each is a separate mapping.
class Mappings {
 public:
  explicit Mappings(std::size_t count)
      : bytes_(count * kPage), start_(mapped(bytes_, MAP_PRIVATE)) {
    for (std::size_t i = 0; i < count; i += 2)
      must(::mprotect(start_ + i * kPage, kPage, PROT_READ), "mprotect");
  }
  ~Mappings() { ::munmap(start_, bytes_); }
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;
  std::uint64_t last() const { return reinterpret_cast<std::uintptr_t>(start_) + bytes_ - kPage; }
  static constexpr std::size_t kPage = 4096;

 private:
  const std::size_t bytes_;
  std::byte* const start_;
};

template <auto ask>
void access(benchmark::State& state) {
  const Mappings mappings(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state)
    if (!ask(mappings.last(), Mappings::kPage)) die("no access");
}
BENCHMARK(access<&base::memoryAccess>)->Name("access/query")->Arg(100)->Arg(5'000)->Arg(50'000);
BENCHMARK(access<&base::memoryAccessFromList>)
    ->Name("access/list")
    ->Arg(100)
    ->Arg(5'000)
    ->Arg(50'000);

struct Target {
  explicit Target(benchmark::State& state) : memory(std::size_t{1} << 20U, std::byte{1}) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const auto pieces = static_cast<std::size_t>(state.range(1));
    for (std::size_t i = 0; i < pieces; ++i)
      to.push_back({memory.data() + i * 8192, bytes / pieces});
  }
  std::vector<std::byte> memory, from = std::vector<std::byte>(base::CheckedCopy::kMostBytes);
  std::vector<iovec> to;
};

void checked(benchmark::State& state) {
  Target target(state);
  const auto copy = base::CheckedCopy::open();
  if (!copy) die("this system has no checked copies");
  for (auto _ : state)
    if (!copy->copy(target.to, target.from.data())) die("a checked copy failed");
}

void plain(benchmark::State& state) {
  Target target(state);
  for (auto _ : state) {
    const std::byte* from = target.from.data();
    for (const iovec& piece : target.to) {
      std::memcpy(piece.iov_base, from, piece.iov_len);
      from += piece.iov_len;
    }
    benchmark::ClobberMemory();
  }
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Args({8, 1})
      ->Args({4096, 1})
      ->Args({4096, 64})
      ->Args({8192, 2})
      ->Args({61440, 1})
      ->Args({61440, 60});
}
BENCHMARK(checked)->Apply(sizes);
BENCHMARK(plain)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
