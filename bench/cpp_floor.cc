// Measures the C++ calls that the Python package makes. The agents, the memory and the blocks are
// those of bench/python/viaduct_figures.py. Each row is the median of several runs.
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint64_t kBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kBlock = 256;
constexpr std::uint32_t kIndices = 1024;

template <class Call>
void say(Table& table, std::string_view what, std::size_t times, const Call& call) {
  table.row(what, inTurns({21}, {[&](int) { return 1e9 * secondsPerCall(times, call); }})[0]);
}

std::vector<std::int64_t> numbers(std::uint64_t seed) {
  const Indices all = shuffled(kBytes / kBlock, seed);
  return {all.begin(), all.begin() + kIndices};
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "cpp_floor");
  Pair pair({}, kBytes);
  Source& here = pair.source;
  Agent& there = pair.target.agent;
  Table table({words("", 48), figure("ns", 0)});

  Transfer small = here.plan(OpKind::kWrite, {.bytes = 8, .count = 1});
  say(table, "post and poll of 8 bytes", 20000, [&] {
    must(small.post());
    small.poll();
  });
  const Run run{.bytes = kBlock, .count = kBytes / kBlock};
  const auto take = numbers(1), put = numbers(2);
  say(table, "plan with 1024 indices on each side", 500, [&] {
    const Indices from(take.begin(), take.end()), to(put.begin(), put.end());
    const Transfer planned = here.plan(OpKind::kWrite, run, {}, from, to);
  });
  say(table, "take a note when there is none", 20000, [&] { here.agent.takeNote(); });
  say(table, "a note of 32 bytes, sent and taken", 2000, [&] {
    must(here.peer.note("12345678123456781234567812345678"));
    while (!there.takeNote()) there.poll();
  });
}
