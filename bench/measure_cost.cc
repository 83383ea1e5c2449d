// The cost of measuring, turn by turn in one run: transfers timed as by `viaduct bench`, beside a
// bare loop that posts the same transfer and waits. Also filling and checking contents, beside
// copies of as many bytes.   measure_cost [ROUNDS [MILLISECONDS]]
#include "harness/agents.h"
#include "measure/proof/lane.h"
#include "measure/workload/buffer.h"
#include "measure/workload/pattern.h"

namespace viaduct::measure {
namespace {

using bench::must, bench::Table, bench::spread, bench::words, bench::figure;

constexpr std::uint64_t kBytes = std::uint64_t{64} << 20U;
// Microseconds a transfer, as the lane times it.
double timed(Lane& lane, Duration length) {
  const Orders orders{Order::kGoOn};
  const LaneTimes times = must(lane.run({.iterations = 10, .time = length}, orders));
  double all = 0;
  for (const auto& part : times.parts) all += part.seconds;
  return 1e6 * all / static_cast<double>(times.iterations);
}

// One process's memory, and that of the target.
struct Ends {
  Agent& agent;
  const Peer& peer;
  Buffer& memory;
  std::uint64_t remote;
};

void row(Table& table, const Ends& ends, const Workload& load, int rounds, Duration length) {
  const Spec spec;
  const NoteSource notes = [&](Deadline until) { return ends.agent.waitNote(until); };
  const auto blocks = [&](std::uint64_t at) {
    return must(Blocks::strided({.base = at, .bytes = load.block_bytes, .count = load.batch}));
  };
  const LaneSeed seed{.spec = spec,
                      .row = load,
                      .agent = ends.agent,
                      .peer = ends.peer,
                      .notes = notes,
                      .memory = ends.memory,
                      .remote = [&](std::uint64_t) { return blocks(ends.remote); }};
  const auto lane = must(Lane::plan(seed));
  Transfer transfer = must(
      ends.agent.plan(load.op, ends.peer,
                      {blocks(ends.memory.address()), blockOrder(load.batch, spec.seed, seed.role)},
                      {blocks(ends.remote), blockOrder(load.batch, spec.seed, Role::kTarget)}));
  const auto [loop, tool] = bench::inTurns(
      {rounds, 1}, {[&](int) {
                      return 1e6 *
                             bench::secondsPerCall(length, [&] { bench::postAndWait(transfer); });
                    },
                    [&](int) { return timed(*lane, length); }});
  table.row(load.backend, load.block_bytes, load.batch, loop, tool, tool / loop);
}

void contents(Table& table, const Ends& ends, std::uint64_t block, int rounds) {
  const Pattern pattern{.seed = 1, .block_bytes = block, .blocks = kBytes / block, .epoch = 1};
  const auto each = [&](const auto& work) {
    return 1e3 * bench::secondsOf([&] {
             for (std::uint64_t k = 0; k < pattern.blocks; ++k)
               work(ends.memory.bytes().subspan(k * block, block), k);
           });
  };
  const auto all = [&](std::uint64_t at) {
    return bench::blocks({.base = at, .bytes = block, .count = pattern.blocks});
  };
  Transfer transfer = must(
      ends.agent.plan(OpKind::kWrite, ends.peer, all(ends.memory.address()), all(ends.remote)));
  const auto [fill, copy, verify] = bench::inTurns(
      {rounds, 1},
      {[&](int) { return each([&](auto bytes, std::uint64_t k) { pattern.fill(bytes, k); }); },
       [&](int) { return 1e3 * bench::secondsOf([&] { bench::postAndWait(transfer); }); },
       [&](int) {
         return each([&](auto bytes, std::uint64_t k) {
           if (pattern.verify(bytes, k)) bench::die("a block has other bytes");
         });
       }});
  table.row(block, copy, fill, verify, verify / copy);
}

void run(const std::string& backend, int rounds, Duration length) {
  Settings settings;
  settings.backends = {backend};
  settings.copy_threads = 1;  // one thread copies, because one thread checks contents
  const bench::TargetProcess target(settings, kBytes);
  Agent agent = must(Agent::open(settings));
  const Peer peer = must(agent.importCard(target.card));
  must(peer.ready(bench::kLong));
  Buffer memory = must(Buffer::make(agent, kBytes, {}, ""));
  const Ends ends{agent, peer, memory, must(peer.waitPin(bench::kMemory, bench::kLong)).address};
  Table table({words("us", 6), figure("block", 0), figure("blocks", 0), spread("bare loop", 3),
               spread("timed", 3), spread("ratio", 3)});
  for (const auto& [block, batch] :
       {std::pair<std::uint64_t, std::uint32_t>{8, 1}, {4096, 64}, {65536, 64}, {kBytes, 1}})
    row(table, ends, {.backend = backend, .block_bytes = block, .batch = batch}, rounds, length);
  fmt::print("\n");
  if (backend != "local") return;
  Table filled({figure("64 MiB in", 0), spread("copy, ms", 3), spread("fill", 3),
                spread("verify", 3), spread("verify to copy", 3)});
  for (const std::uint64_t block : {64ULL << 10, 1ULL << 20, 64ULL << 20})
    contents(filled, ends, block, rounds);
  fmt::print("\n");
}

}  // namespace
}  // namespace viaduct::measure

int main(int argc, char** argv) {
  const viaduct::bench::Arguments given(argc, argv, "measure_cost [ROUNDS [MILLISECONDS]]");
  for (const char* backend : {"local", "tcp"})
    viaduct::measure::run(backend, given.number(0, 11),
                          std::chrono::milliseconds(given.number(1, 100)));
}
