// Compares a backend with a bare loop of the same library's calls, turn by turn in one run, between
// two processes. The including program supplies the bare loop. Threads: one.
#pragma once

#include "base/lists.h"
#include "harness/agents.h"

namespace viaduct::bench {

struct Workload {
  const char* name;
  std::size_t bytes, count;
};

struct FloorOptions {
  Settings settings = {};
  std::span<const Workload> workloads = {};
  std::size_t region = std::size_t{64} << 20U;
  std::size_t further = 0;  // bytes behind the region
  int rounds = 15;
  Duration turn = std::chrono::milliseconds(40), warm_up = {};
};

// The parts of one process's end of a bare loop.
struct BareEnd {
  const Settings& settings;
  Channel& other;
  std::byte* memory;
  std::size_t bytes;
  bool leads;
};

// `Bare` is made from a BareEnd. Its write(from, into) returns when the bytes are at the other end.
// There, serve(into, over) makes progress until over() is true.
template <class Bare>
class Floor {
 public:
  explicit Floor(FloorOptions options) : options_(std::move(options)) {}

  // lead(bare, source, turns) measures further kinds of turns, numbered from kFurtherTurns on. The
  // other process calls follow(turn, bare, target, turns) for them.
  static constexpr int kFurtherTurns = 1000;
  template <class Lead, class Follow>
  void run(const Lead& lead, const Follow& follow) {
    Child child([&](Channel& parent) {
      pinTo(1);
      std::byte* const memory = touched(bytes());
      Bare bare({options_.settings, parent, memory, bytes(), false});
      Target target(named("target"), Segment::host(memory, bytes()));
      const auto into = base::mapped(options_.workloads, [&](const Workload& workload) {
        return blocksOf(workload, target.here(), 2);
      });
      parent.send(target.agent.exportCard());
      turns_.follow([&](int turn) {
        const auto over = [&] { return turns_.over(turn); };
        if (turn >= kFurtherTurns) return follow(turn, bare, target, turns_);
        if (turn % 2 == 0) return bare.serve(into[static_cast<std::size_t>(turn / 2)], over);
        while (!over()) target.agent.poll();
      });
    });
    pinTo(0);
    std::byte* const memory = touched(bytes());
    Bare bare({options_.settings, child, memory, bytes(), true});
    Source source(named("source"), Segment::host(memory, bytes()), child.receive());
    fmt::print("{}\nmedian (10th..90th percentile)\n", source.peer.ways().front().text);
    Table table({words("", 14), spread("bare, GB/s", 4), spread("backend, GB/s", 4),
                 spread("ratio", 2), figure("ns a block", 0), figure("more, ns", 0)});
    for (int turn = 0; const Workload& workload : options_.workloads) {
      measure(table, workload, turn, bare, source);
      turn += 2;
    }
    lead(bare, source, turns_);
    turns_.finish();
  }
  void run() {
    run([](auto&...) {}, [](int, auto&...) {});
  }

 private:
  std::size_t bytes() const { return options_.region + options_.further; }
  Settings named(const char* name) const {
    Settings settings = options_.settings;
    settings.name = name;
    return settings;
  }
  // The blocks of a workload at seeded random places.
  std::vector<Extent> blocksOf(const Workload& workload, std::uint64_t base,
                               std::uint64_t seed) const {
    const Indices places = shuffled(options_.region / workload.bytes, seed);
    std::vector<Extent> out;
    for (std::size_t i = 0; i < workload.count; ++i)
      out.push_back({base + places[i] * workload.bytes, workload.bytes});
    return out;
  }
  template <class Once>
  double secondsInTurn(int turn, const Once& once) {
    turns_.begin(turn);
    once();
    return secondsPerCall(options_.turn, once);
  }

  void measure(Table& table, const Workload& workload, int turn, Bare& bare, Source& source) {
    const auto from = blocksOf(workload, source.here(), 1),
               into = blocksOf(workload, source.there, 2);
    Transfer transfer = must(source.agent.plan(
        OpKind::kWrite, source.peer, {must(Blocks::list(from)), {}}, {must(Blocks::list(into)), {}},
        {.require = "backend:" + options_.settings.backends.front()}));
    const auto warm_up = std::max<Duration::rep>(2, options_.warm_up / options_.turn / 2);
    const auto [floor, ours] =
        inTurns({options_.rounds, static_cast<int>(warm_up)},
                {[&](int) { return secondsInTurn(turn, [&] { bare.write(from, into); }); },
                 [&](int) { return secondsInTurn(turn + 1, [&] { postAndPoll(transfer); }); }});
    const auto count = static_cast<double>(workload.count);
    const double gigabytes = static_cast<double>(workload.bytes) * count / 1e9;
    const auto ns = [&](double seconds) { return 1e9 * seconds / count; };
    table.row(workload.name, gigabytes / floor, gigabytes / ours, floor / ours, ns(ours.median()),
              ns(ours.median() - floor.median()));
  }

  const FloorOptions options_;
  Turns& turns_ = shared<Turns>();
};

}  // namespace viaduct::bench
