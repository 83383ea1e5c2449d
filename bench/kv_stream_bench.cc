// Pushes the KV cache of a request layer by layer, and as one transfer, in turns. Llama-3.1-8B,
// 8,192 tokens, blocks of 16 tokens in random order, TP 1 at both ends: 1 GiB. usage:
// kv_stream_bench BACKEND [ROUNDS]
#include <fmt/format.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "forked.h"
#include "median.h"
#include "must.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using namespace std::chrono_literals;

constexpr std::uint32_t kLayers = 32, kBlocks = 512;

KvLayout layoutAt(std::uint64_t address) {
  std::vector<std::uint32_t> layers(kLayers);
  std::iota(layers.begin(), layers.end(), 0);
  return must(
      arrangeKv({.groups = {{.caches = {{.layers = layers, .kv_heads = 8, .head_size = 128}}}}},
                KvArrangement::kApart, address, kBlocks));
}

Indices shuffled(unsigned seed) {
  Indices out;
  for (std::uint32_t i = 0; i < kBlocks; ++i) out.push_back(i);
  std::shuffle(out.begin(), out.end(), std::mt19937(seed));
  return out;
}

Agent open(const char* name, const char* backend) {
  return must(Agent::open(
      {.name = name, .listen = {"127.0.0.1:0"}, .insecure = true, .backends = {backend}}));
}

// A round: 0 layers ends the destination.
struct Round {
  std::uint64_t stream = 0;
  std::uint32_t marks = 0;
};
// When the first mark and the last one had arrived.
struct Times {
  Clock::time_point first, all;
};

Status runDestination(const char* backend, int in, int out) {
  Agent agent = open("destination", backend);
  const std::uint64_t bytes = kvExtent(layoutAt(0)).bytes;
  const Pin pin = must(agent.allocate(bytes, {.label = "kv"}));
  std::fill_n(pin.data(), bytes, std::byte{1});
  put(out, agent.exportCard());
  putValue(out, pin.info().address);
  static_cast<void>(getValue<int>(in));  // the source is connected
  const Peer source = must(agent.peer("source"));
  must(source.ready(60s));
  while (true) {
    const auto round = getValue<Round>(in);
    if (round.marks == 0) return Ok{};
    const MarkStream marks =
        must(agent.openMarks(source, {.number = round.stream, .marks = round.marks}));
    putValue(out, 0);
    Times times;
    must(marks.wait(0, 60s));
    times.first = Clock::now();
    must(marks.waitCount(round.marks, 60s));
    times.all = Clock::now();
    putValue(out, times);
  }
}

double ms(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

struct Rows {
  std::vector<double> plan, post, first, all;
};

// Prepares a request, whose posts `go` makes.
template <class Prepare>
void round(Child& child, std::uint64_t stream, std::uint32_t marks, Rows& rows, Prepare prepare) {
  putValue(child.out(), Round{stream, marks});
  static_cast<void>(getValue<int>(child.in()));
  const auto begin = Clock::now();
  auto request = prepare(stream);
  const auto start = Clock::now();
  request.post();
  const auto posted = Clock::now();
  request.wait();
  const auto times = getValue<Times>(child.in());
  rows.plan.push_back(ms(start - begin));
  rows.post.push_back(ms(posted - start));
  rows.first.push_back(ms(times.first - start));
  rows.all.push_back(ms(times.all - start));
}

struct AsLayers {
  KvPush push;
  void post() {
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) must(push.ready(layer));
  }
  void wait() { must(push.wait(60s)); }
};
struct AsOne {
  Transfer transfer;
  std::uint64_t stream;
  void post() { must(transfer.post({.mark = Mark{.stream = stream, .number = 0}})); }
  void wait() { must(transfer.wait(60s)); }
};

void print(const char* name, const Rows& rows) {
  fmt::print("{:>12} {:>10.3f} {:>10.3f} {:>12.2f} {:>12.2f}\n", name, median(rows.plan),
             median(rows.post), median(rows.first), median(rows.all));
}

void runSource(const char* backend, Child& child, int rounds) {
  Agent agent = open("source", backend);
  const std::uint64_t bytes = kvExtent(layoutAt(0)).bytes;
  const Pin pin = must(agent.allocate(bytes, {.label = "kv"}));
  std::fill_n(pin.data(), bytes, std::byte{2});
  const Peer peer = must(agent.importCard(get(child.in())));
  const KvLayout from = layoutAt(pin.info().address),
                 to = layoutAt(getValue<std::uint64_t>(child.in()));
  must(peer.ready(60s));
  must(peer.waitPin("kv", 60s));
  putValue(child.out(), 0);
  const KvLayers layers = must(KvLayers::plan(from, to));
  const KvReshard reshard = must(KvReshard::plan(from, to));
  const std::array blocks{KvBlocks{.source = shuffled(1), .destination = shuffled(2)}};
  const auto asLayers = [&](std::uint64_t stream) {
    return AsLayers{must(KvPush::open(agent, peer, layers, blocks, {.stream = stream}))};
  };
  const auto asOne = [&](std::uint64_t stream) {
    const auto taken = must(reshard.select(blocks));
    return AsOne{must(agent.plan(OpKind::kWrite, peer, taken.source, taken.destination)), stream};
  };
  Rows warm, layered, one;
  std::uint64_t stream = 0;
  for (int i = 0; i <= rounds; ++i) {
    round(child, stream++, kLayers, i == 0 ? warm : layered, asLayers);
    round(child, stream++, 1, i == 0 ? warm : one, asOne);
  }
  putValue(child.out(), Round{});
  fmt::print("{}: {} MiB, {} rounds; medians in ms\n\n", backend, bytes >> 20U, rounds);
  fmt::print("{:>12} {:>10} {:>10} {:>12} {:>12}\n", "", "plan", "post", "first usable", "all");
  print("32 layers", layered);
  print("one transfer", one);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < one.all.size(); ++i) ratios.push_back(layered.all[i] / one.all[i]);
  fmt::print("\nratio of the total times, median of pairs: {:.3f}\n", median(ratios));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) die("usage: kv_stream_bench BACKEND [ROUNDS]");
  Child child([&](int in, int out) { return runDestination(argv[1], in, out); });
  runSource(argv[1], child, argc > 2 ? std::atoi(argv[2]) : 15);
}
