// Compares the first pass over a peer's freshly allocated memory with later passes:
// docs/measured/local.md. Each sample is two fresh processes; the kinds of samples take turns.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/shared_memory.h"
#include "must.h"

namespace {

using namespace viaduct;
using namespace std::chrono_literals;

constexpr std::uint64_t kPool = std::uint64_t{512} << 20U;
constexpr std::uint64_t kBlock = 4096;
constexpr std::size_t kBlocks = 16384;
constexpr int kLaterPasses = 5;

// Shared by the processes of one sample.
struct Board {
  std::atomic<std::uint64_t> card_bytes{0};
  std::array<std::byte, 65536> card;
  Clock::time_point pinned;
  double pin_us = 0;
  std::array<double, kLaterPasses + 1> passes_ns = {};
  std::atomic<bool> over{false};
};

double nsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

Settings settingsOf(std::uint64_t populate) {
  Settings settings;
  settings.copy_threads = 1;
  settings.populate = populate;
  return settings;
}

void ownPool(Board& board, std::uint64_t populate, bool shared) {
  Agent agent = must(Agent::open(settingsOf(populate)));
  void* plain = ::mmap(nullptr, kPool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto memfd = must(base::SharedMemory::allocate(kPool));  // as Agent::allocate does
  const Segment memory = shared ? memfd.segment() : Segment::host(plain, kPool);
  const auto start = Clock::now();
  const Pin pool = must(agent.pin(memory, "pool"));
  board.pin_us = nsSince(start) / 1000;
  board.pinned = Clock::now();
  const auto card = agent.exportCard();
  std::ranges::copy(card, board.card.begin());
  board.card_bytes = card.size();
  while (!board.over) std::this_thread::sleep_for(1ms);
}

// The pool's block numbers in random order.
std::vector<std::uint32_t> scattered() {
  std::vector<std::uint32_t> blocks(kPool / kBlock);
  std::iota(blocks.begin(), blocks.end(), 0U);
  std::ranges::shuffle(blocks, std::mt19937_64(1));
  blocks.resize(kBlocks);
  return blocks;
}

// Writes 64 MiB to random blocks of the pool.
void writeToPool(Board& board, std::uint64_t populate) {
  while (board.card_bytes == 0) std::this_thread::sleep_for(1ms);
  Agent agent = must(Agent::open(settingsOf(populate)));
  Pin source = must(agent.allocate(kBlocks * kBlock));
  std::memset(reinterpret_cast<void*>(source.info().address), 1, kBlocks * kBlock);
  Peer peer = must(agent.importCard(std::span(board.card).first(board.card_bytes)));
  must(peer.ready(10s));
  const PinInfo pool = must(peer.waitPin("pool", 10s));
  std::vector<std::uint32_t> here(kBlocks);
  std::iota(here.begin(), here.end(), 0U);
  const auto blocks = [](std::uint64_t base, std::uint64_t count) {
    return must(Blocks::strided({.base = base, .bytes = kBlock, .count = count}));
  };
  Transfer transfer = must(agent.plan(
      OpKind::kWrite, peer, {blocks(source.info().address, kBlocks), here},
      {blocks(pool.address, kPool / kBlock), scattered()}, {.require = "backend:local"}));
  std::this_thread::sleep_until(board.pinned + 1s);
  std::vector<double> passes;
  for (int pass = 0; pass <= kLaterPasses; ++pass) {
    const auto start = Clock::now();
    must(transfer.post());
    must(transfer.wait(60s));
    passes.push_back(nsSince(start) / kBlocks);
  }
  std::ranges::copy(passes, board.passes_ns.begin());
}

template <class F>
int forked(F body) {
  const int pid = ::fork();
  if (pid == 0) {
    body();
    std::_Exit(0);
  }
  return pid;
}

// Adds the time of the first pass, and the median of the others.
template <class Kind>
void addPasses(Kind& kind, std::vector<double> passes) {
  const double first = passes.front();
  std::sort(passes.begin() + 1, passes.end());
  const double later = passes[1 + kLaterPasses / 2];
  kind.first.push_back(first);
  kind.later.push_back(later);
  kind.ratio.push_back(first / later);
}

struct Kind {
  std::string name;
  std::uint64_t populate;
  bool shared;
  std::vector<double> first = {}, later = {}, ratio = {}, pin_us = {};
};

void sample(Kind& kind) {
  void* at =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Board& board = *new (at) Board;
  const int owner = forked([&] { ownPool(board, kind.populate, kind.shared); });
  const int writer = forked([&] { writeToPool(board, kind.populate); });
  int status = 0;
  ::waitpid(writer, &status, 0);
  board.over = true;
  ::waitpid(owner, nullptr, 0);
  if (status != 0) die("the writer failed");
  addPasses(kind, {board.passes_ns.begin(), board.passes_ns.end()});
  kind.pin_us.push_back(board.pin_us);
  ::munmap(at, sizeof(Board));
}

// Measures populating alone, and the remaining cost of the first pass: first in the owner's mapping
// of a memfd, then in a second mapping with either advice.
struct Advice {
  std::string name;
  int advice;
  std::vector<double> allocate_ms = {}, map_ms = {}, first = {}, later = {}, ratio = {};
};

double populateMs(const base::SharedMemory& memory, int advice) {
  constexpr std::uint64_t kStep = std::uint64_t{512} << 10U;
  const auto start = Clock::now();
  for (std::uint64_t at = 0; at < kPool; at += kStep)
    if (::madvise(memory.data() + at, kStep, advice) != 0) die("madvise");
  return nsSince(start) / 1e6;
}

void sample(Advice& kind, const std::vector<std::uint32_t>& blocks) {
  const auto memory = must(base::SharedMemory::allocate(kPool));
  kind.allocate_ms.push_back(populateMs(memory, MADV_POPULATE_READ));
  const base::Fd file(::dup(memory.fd()));
  const auto mapped =
      must(base::SharedMemory::map(file, kPool, base::SharedMemory::Access::kReadWrite));
  kind.map_ms.push_back(populateMs(mapped, kind.advice));
  const std::vector<std::byte> source(kBlock, std::byte{1});
  std::vector<double> passes;
  for (int pass = 0; pass <= kLaterPasses; ++pass) {
    const auto start = Clock::now();
    for (const std::uint32_t block : blocks)
      std::memcpy(mapped.data() + block * kBlock, source.data(), kBlock);
    passes.push_back(nsSince(start) / kBlocks);
  }
  addPasses(kind, std::move(passes));
}

std::string spread(std::vector<double> values, int digits) {
  std::ranges::sort(values);
  return fmt::format("{:.{}f} ({:.{}f}-{:.{}f})", values[values.size() / 2], digits, values.front(),
                     digits, values.back(), digits);
}

}  // namespace

// first_touch [rounds]
int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  const std::uint64_t populate = Settings{}.populate;
  std::array kinds{Kind{"populated", populate, true}, Kind{"not populated", 0, true},
                   Kind{"plain memory (cma)", 0, false}};
  for (int round = 0; round < rounds; ++round)
    for (Kind& kind : kinds) sample(kind);
  std::printf("16,384 x 4 KiB over 512 MiB, 1 s after pinning: median (least-most) of %d\n",
              rounds);
  std::printf("%-20s %20s %20s %18s %18s\n", "", "first pass, ns", "later passes, ns", "ratio",
              "pin, us");
  for (const Kind& kind : kinds)
    std::printf("%-20s %20s %20s %18s %18s\n", kind.name.c_str(), spread(kind.first, 0).c_str(),
                spread(kind.later, 0).c_str(), spread(kind.ratio, 2).c_str(),
                spread(kind.pin_us, 0).c_str());

  std::array advices{Advice{"MADV_POPULATE_READ", MADV_POPULATE_READ},
                     Advice{"MADV_POPULATE_WRITE", MADV_POPULATE_WRITE}};
  const auto blocks = scattered();
  for (int round = 0; round < rounds; ++round)
    for (Advice& advice : advices) sample(advice, blocks);
  std::printf("\nBare loops over two mappings of a memfd\n%-20s %18s %18s %18s %18s %16s\n", "",
              "allocate, ms", "map, ms", "first pass, ns", "later passes, ns", "ratio");
  for (const Advice& advice : advices)
    std::printf("%-20s %18s %18s %18s %18s %16s\n", advice.name.c_str(),
                spread(advice.allocate_ms, 0).c_str(), spread(advice.map_ms, 0).c_str(),
                spread(advice.first, 0).c_str(), spread(advice.later, 0).c_str(),
                spread(advice.ratio, 2).c_str());
  return 0;
}
