// Pushes the KV cache of a request layer by layer, and as one transfer, in turns. Llama-3.1-8B,
// 8,192 tokens, blocks of 16 tokens in random order, TP 1 at both ends: 1 GiB. usage:
// kv_stream_bench BACKEND [ROUNDS]
#include <array>

#include "mark_rounds.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint32_t kLayers = 32, kBlocks = 512;

KvLayout layoutAt(std::uint64_t address) {
  std::vector<std::uint32_t> layers(kLayers);
  std::iota(layers.begin(), layers.end(), 0);
  return must(
      arrangeKv({.groups = {{.caches = {{.layers = layers, .kv_heads = 8, .head_size = 128}}}}},
                KvArrangement::kApart, address, kBlocks));
}

struct Round {
  std::uint64_t stream = 0;
  std::uint32_t marks = 0;
};
// When the first mark and the last one had arrived.
struct Times {
  Clock::time_point first, all;
};

void destination(const std::string& backend, std::uint64_t bytes, const Channel& parent) {
  receiveRounds<Round>(backend, bytes, parent,
                       [&](Target&, const Round& round, const MarkStream& marks) {
                         Times times;
                         must(marks.wait(0, kLong));
                         times.first = Clock::now();
                         must(marks.waitCount(round.marks, kLong));
                         times.all = Clock::now();
                         parent.sendValue(times);
                       });
}

struct AsLayers {
  KvPush push;
  void post() {
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) must(push.ready(layer));
  }
  void wait() { must(push.wait(kLong)); }
};
struct AsOne {
  Transfer transfer;
  std::uint64_t stream;
  void post() { must(transfer.post({.mark = Mark{.stream = stream, .number = 0}})); }
  void wait() { must(transfer.wait(kLong)); }
};

// In milliseconds.
struct Requests {
  const char* name;
  Samples plan = {}, post = {}, first = {}, all = {};

  // Prepares a request, and posts it.
  template <class Prepare>
  void take(const MarkSource& source, const Round& round, const Prepare& prepare, bool counts) {
    source.begin(round);
    const auto begin = Clock::now();
    auto request = prepare(round.stream);
    const auto start = Clock::now();
    request.post();
    const auto posted = Clock::now();
    request.wait();
    const auto times = source.channel.receiveValue<Times>();
    if (!counts) return;
    plan.add(1e3 * secondsBetween(begin, start));
    post.add(1e3 * secondsBetween(start, posted));
    first.add(1e3 * secondsBetween(start, times.first));
    all.add(1e3 * secondsBetween(start, times.all));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "kv_stream_bench BACKEND [ROUNDS]");
  const int rounds = given.number(1, 15);
  const std::uint64_t bytes = kvExtent(layoutAt(0)).bytes;
  Child child([&](Channel& parent) { destination(given.text(0), bytes, parent); });
  MarkSource source(given.text(0), bytes, child);
  const KvLayout from = layoutAt(source.here()), to = layoutAt(source.there);
  const KvLayers layers = must(KvLayers::plan(from, to));
  const KvReshard reshard = must(KvReshard::plan(from, to));
  const std::array order{
      KvBlocks{.source = shuffled(kBlocks, 1), .destination = shuffled(kBlocks, 2)}};
  const auto asLayers = [&](std::uint64_t stream) {
    return AsLayers{
        must(KvPush::open(source.agent, source.peer, layers, order, {.stream = stream}))};
  };
  const auto asOne = [&](std::uint64_t stream) {
    const auto taken = must(reshard.select(order));
    return AsOne{
        must(source.agent.plan(OpKind::kWrite, source.peer, taken.source, taken.destination)),
        stream};
  };
  Requests layered{"32 layers"}, one{"one transfer"};
  std::uint64_t stream = 0;
  for (int i = 0; i <= rounds; ++i) {
    layered.take(source, {stream++, kLayers}, asLayers, i != 0);
    one.take(source, {stream++, 1}, asOne, i != 0);
  }
  source.finish<Round>();
  fmt::print("{}: {} MiB, {} rounds; medians in ms\n\n", given.text(0), bytes >> 20U, rounds);
  Table table({words("", 12), figure("plan", 3), figure("post", 3), figure("first usable", 2),
               figure("all", 2)});
  for (const Requests* way : {&layered, &one})
    table.row(way->name, way->plan, way->post, way->first, way->all);
  fmt::print("\nratio of the total times, median of pairs: {:.3f}\n",
             (layered.all / one.all).median());
}
