// Measures the C++ calls that the Python package makes. The agents, the memory and the blocks are
// those of bench/python/viaduct_figures.py. Each row is the median of several runs.
#include <fmt/format.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "../must.h"

using namespace std::chrono_literals;
using namespace viaduct;

namespace {

constexpr std::uint64_t kBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kBlock = 256;
constexpr std::uint32_t kIndices = 1024;

template <class Call>
void say(std::string_view what, int times, const Call& call) {
  std::vector<double> took;
  for (int repeat = 0; repeat < 21; ++repeat) {
    const auto began = Clock::now();
    for (int i = 0; i < times; ++i) call();
    took.push_back(std::chrono::duration<double, std::nano>(Clock::now() - began).count() / times);
  }
  std::ranges::nth_element(took, took.begin() + took.size() / 2);
  fmt::print("{:48} {:10.0f} ns\n", what, took[took.size() / 2]);
}

Agent open(const char* name) { return must(Agent::open({.name = name})); }

std::vector<std::int64_t> shuffled(unsigned seed) {
  std::vector<std::int64_t> numbers(kBytes / kBlock);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(seed));
  numbers.resize(kIndices);
  return numbers;
}

Blocks blocks(std::uint64_t base, std::uint64_t bytes, std::uint64_t count) {
  return must(Blocks::strided({.base = base, .bytes = bytes, .count = count}));
}

}  // namespace

int main() {
  Agent here = open("here"), there = open("there");
  const Pin memory = must(here.allocate(kBytes));
  const Pin inbox = must(there.allocate(kBytes, {.label = "inbox"}));
  const Peer peer = must(here.importCard(there.exportCard()));
  must(peer.ready(10s));
  const PinInfo remote = must(peer.waitPin("inbox", 10s));

  Transfer small = must(here.plan(OpKind::kWrite, peer, {blocks(memory.info().address, 8, 1)},
                                  {blocks(remote.address, 8, 1)}));
  say("post and poll of 8 bytes", 20000, [&] {
    must(small.post());
    small.poll();
  });
  const Blocks ours = blocks(memory.info().address, kBlock, kBytes / kBlock);
  const Blocks theirs = blocks(remote.address, kBlock, kBytes / kBlock);
  const auto take = shuffled(1), put = shuffled(2);
  say("plan with 1024 indices on each side", 500, [&] {
    const Indices from(take.begin(), take.end()), to(put.begin(), put.end());
    const Transfer planned = must(here.plan(OpKind::kWrite, peer, {ours, from}, {theirs, to}));
  });
  say("take a note when there is none", 20000, [&] { here.takeNote(); });
  say("a note of 32 bytes, sent and taken", 2000, [&] {
    must(peer.note("12345678123456781234567812345678"));
    while (!there.takeNote()) there.poll();
  });
}
