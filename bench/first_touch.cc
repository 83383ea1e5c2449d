// Compares the first pass over a peer's freshly allocated memory with later passes:
// docs/measured/local.md. Each sample is two fresh processes; the kinds of samples take turns.
//   first_touch [ROUNDS]
#include <sys/mman.h>

#include <thread>

#include "base/shared_memory.h"
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using namespace std::chrono_literals;

constexpr std::uint64_t kPool = std::uint64_t{512} << 20U;
constexpr std::uint64_t kBlock = 4096;
constexpr std::size_t kBlocks = 16384;
constexpr std::size_t kLaterPasses = 5;

// Nanoseconds a block, of the first pass and of those after it.
using Passes = std::array<double, kLaterPasses + 1>;

template <class Pass>
Passes passes(const Pass& pass) {
  Passes out;
  for (double& one : out) one = 1e9 / kBlocks * secondsOf(pass);
  return out;
}

// The first pass of each round, and the median of the round's later passes.
struct PassSamples {
  Samples first, later;
  void add(const Passes& ns) {
    Samples others;
    for (std::size_t i = 1; i < ns.size(); ++i) others.add(ns[i]);
    first.add(ns.front());
    later.add(others.median());
  }
};

struct Kind {
  const char* name;
  std::uint64_t populate;
  bool shared;
  PassSamples passes = {};
  Samples pin_us = {};

  Settings settings() const { return {.copy_threads = 1, .populate = populate}; }
};

struct Pinned {
  double us = 0;
  Clock::time_point at;
};

void ownPool(const Kind& kind, const Channel& parent) {
  Agent agent = must(Agent::open(kind.settings()));
  std::byte* const plain = mapped(kPool, MAP_PRIVATE);
  const auto memfd = must(base::SharedMemory::allocate(kPool));  // as Agent::allocate does
  const Segment memory = kind.shared ? memfd.segment() : Segment::host(plain, kPool);
  std::optional<Pin> pool;
  const double seconds = secondsOf([&] { pool = must(agent.pin(memory, kMemory)); });
  parent.sendValue(Pinned{1e6 * seconds, Clock::now()});
  parent.send(agent.exportCard());
  parent.receive();
}

// The pool's block numbers in random order.
Indices scattered() {
  Indices blocks = shuffled(kPool / kBlock, 1);
  blocks.resize(kBlocks);
  return blocks;
}

// Writes 64 MiB to random blocks of the pool.
void writeToPool(const Kind& kind, const Channel& parent) {
  const auto pinned = parent.receiveValue<Pinned>();
  Source source(kind.settings(), kBlocks * kBlock, parent.receive());
  std::memset(source.memory.data(), 1, kBlocks * kBlock);
  Transfer transfer = must(source.agent.plan(
      OpKind::kWrite, source.peer,
      blocks({.base = source.here(), .bytes = kBlock, .count = kBlocks}),
      blocks({.base = source.there, .bytes = kBlock, .count = kPool / kBlock}, scattered()),
      {.require = "backend:local"}));
  std::this_thread::sleep_until(pinned.at + 1s);
  parent.sendValue(passes([&] { postAndWait(transfer); }));
}

void sample(Kind& kind) {
  const Child owner([&](Channel& parent) { ownPool(kind, parent); });
  const Child writer([&](Channel& parent) { writeToPool(kind, parent); });
  const auto pinned = owner.receiveValue<Pinned>();
  writer.sendValue(pinned);
  writer.send(owner.receive());
  kind.passes.add(writer.receiveValue<Passes>());
  kind.pin_us.add(pinned.us);
}

// Measures the time to populate the owner's mapping of a memfd, and then a second mapping with
// `advice`. `passes` has the remaining cost of the passes over the second mapping.
struct Advice {
  const char* name;
  int advice;
  Samples allocate_ms = {}, map_ms = {};
  PassSamples passes = {};
};

double populateMs(const base::SharedMemory& memory, int advice) {
  constexpr std::uint64_t kStep = std::uint64_t{512} << 10U;
  return 1e3 * secondsOf([&] {
           for (std::uint64_t at = 0; at < kPool; at += kStep)
             must(::madvise(memory.data() + at, kStep, advice), "madvise");
         });
}

void sample(Advice& kind, const Indices& order) {
  const auto memory = must(base::SharedMemory::allocate(kPool));
  kind.allocate_ms.add(populateMs(memory, MADV_POPULATE_READ));
  const Fd file(::dup(memory.fd()));
  const auto second =
      must(base::SharedMemory::map(file, kPool, base::SharedMemory::Access::kReadWrite));
  kind.map_ms.add(populateMs(second, kind.advice));
  const std::vector<std::byte> source(kBlock, std::byte{1});
  kind.passes.add(passes([&] {
    for (const std::uint64_t block : order)
      std::memcpy(second.data() + block * kBlock, source.data(), kBlock);
  }));
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "first_touch [ROUNDS]");
  const Rounds rounds{given.number(0, 9)};
  const std::uint64_t populate = Settings{}.populate;
  std::array kinds{Kind{"populated", populate, true}, Kind{"not populated", 0, true},
                   Kind{"plain memory (cma)", 0, false}};
  inTurns(rounds, kinds, [](Kind& kind, int) { sample(kind); });
  fmt::print("16,384 x 4 KiB over 512 MiB, 1 s after pinning: median (least..most) of {}\n",
             rounds.counted);
  Table table({words("", 20), spread("first pass, ns", 0, 0), spread("later passes, ns", 0, 0),
               spread("ratio", 2, 0), spread("pin, us", 0, 0)});
  for (const auto& [name, populated, shared, passes, pin_us] : kinds)
    table.row(name, passes.first, passes.later, passes.first / passes.later, pin_us);

  std::array advices{Advice{"MADV_POPULATE_READ", MADV_POPULATE_READ},
                     Advice{"MADV_POPULATE_WRITE", MADV_POPULATE_WRITE}};
  const Indices order = scattered();
  inTurns(rounds, advices, [&](Advice& advice, int) { sample(advice, order); });
  fmt::print("\nBare loops over two mappings of a memfd\n");
  Table bare({words("", 20), spread("allocate, ms", 0, 0), spread("map, ms", 0, 0),
              spread("first pass, ns", 0, 0), spread("later passes, ns", 0, 0),
              spread("ratio", 2, 0)});
  for (const auto& [name, advice, allocate_ms, map_ms, passes] : advices)
    bare.row(name, allocate_ms, map_ms, passes.first, passes.later, passes.first / passes.later);
}
