// Compares the local backend with bare loops over the same kind of memory, interleaved in one run,
// for docs/measured/local.md. The second of its two processes only owns memory.
//   local_floor [ROUNDS [PART-OF-A-TITLE]]
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <array>

#include "base/shared_memory.h"
#include "base/wide_copy.h"
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint64_t kArena = std::uint64_t{512} << 20U;
constexpr std::uint64_t kBlock = 4096;

constexpr int kWarmUp = 8;  // uses every block of every set once

std::string only;  // skips the measurements whose title does not contain it

struct Sample {
  std::string name;
  Sampler run;  // returns seconds; rounds count from 0
  Samples wall = {}, cpu = {};
};

template <class F>
Sample timed(std::string name, F work) {
  return {std::move(name), [work](int round) { return secondsOf([&] { work(round); }); }};
}

// Runs every sample once per round, in turn. `unit` is the printed unit in seconds. Ratios are to
// the first sample. CPU time is this process's, so it is valid on a busy machine as well.
void measure(const std::string& title, double unit, const char* name, int rounds,
             std::vector<Sample> samples) {
  if (title.find(only) == std::string::npos) return;
  inTurns({rounds, kWarmUp}, samples, [&](Sample& sample, int round) {
    const double cpu = processorSeconds();
    const double took = sample.run(round + kWarmUp);
    if (round < 0) return;
    sample.wall.add(took / unit);
    sample.cpu.add((processorSeconds() - cpu) / unit);
  });
  fmt::print("{} ({} rounds, {})\n", title, rounds, name);
  Table table({words("", 30), figure("median", 1, 9), figure("best", 1, 9), figure("p10", 1, 9),
               figure("p90", 1, 9), figure("ratio", 3), figure("of best", 3), figure("cpu", 1, 9),
               figure("ratio", 3)});
  const Sample& floor = samples.front();
  for (const auto& [label, run, wall, cpu] : samples)
    table.row("  " + label, wall, wall.least(), wall.quantile(0.1), wall.quantile(0.9),
              wall.median() / floor.wall.median(), wall.least() / floor.wall.least(), cpu,
              cpu.median() / floor.cpu.median());
}

// The block numbers of a copy, in both arenas.
struct Places {
  Indices here = {0}, there = {0};
};
// Numbers of blocks of `span` bytes at random places. Different `part`s share no block.
Places scattered(std::size_t count, std::uint64_t span, std::size_t part) {
  const auto pick = [&](std::uint64_t seed) {
    const Indices all = shuffled(span / kBlock, seed);
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(part * count);
    return Indices(first, first + static_cast<std::ptrdiff_t>(count));
  };
  return {pick(1), pick(2)};
}

Settings with(std::uint32_t threads, std::uint64_t populate = Settings{}.populate) {
  Settings settings;
  settings.copy_threads = threads;
  settings.populate = populate;
  return settings;
}

enum Turn { kSleeping, kPolling };  // the state of the process that gets notes
// Shared by all processes.
struct Board {
  Turns turns;
  Sighting note, event;
};

// The process at the other end, which owns memory and receives notes. `memory` is allocated
// beforehand as Agent::allocate does, so that the bare loops write to the same pages.
void ownMemory(Board& board, const Segment& memory, const Channel& parent) {
  Agent agent = must(Agent::open(with(1)));
  const Pin pinned = must(agent.pin(memory, "shared"));
  const Pin plain = must(agent.pin(Segment::host(touched(kArena), kArena), "plain"));
  parent.send(agent.exportCard());
  board.turns.follow([&](int turn) {
    while (!board.turns.over(turn)) {
      if (turn == kPolling) agent.poll();
      if (turn == kPolling ? agent.takeNote().has_value()
                           : agent.waitNote(std::chrono::milliseconds(100)).has_value())
        board.note.see();
    }
  });
}

void watchEvent(Board& board, int event) {
  for (std::uint64_t count = 0; ::read(event, &count, sizeof count) == sizeof count;)
    board.event.see();
}

// One agent here, with its memory and the peer's memory.
struct Side {
  Side(const Settings& settings, std::span<const std::byte> card, const Segment& memory,
       std::byte* plain_start)
      : agent(must(Agent::open(settings))),
        shared(must(agent.pin(memory))),
        plain(must(agent.pin(Segment::host(plain_start, kArena)))),
        peer(must(agent.importCard(card))) {
    must(peer.ready(kLong));
    shared_there = must(peer.waitPin("shared", kLong)).address;
    plain_there = must(peer.waitPin("plain", kLong)).address;
  }
  Transfer plan(std::uint64_t here, std::uint64_t there, std::uint64_t bytes,
                const Places& pairs = {}) {
    const std::uint64_t count = kArena / bytes;
    return must(agent.plan(OpKind::kWrite, peer,
                           blocks({.base = here, .bytes = bytes, .count = count}, pairs.here),
                           blocks({.base = there, .bytes = bytes, .count = count}, pairs.there),
                           {.require = "backend:local"}));
  }
  Transfer planShared(std::uint64_t bytes, const Places& pairs) {
    return plan(shared.info().address, shared_there, bytes, pairs);
  }
  Transfer planPlain(const Places& pairs) {
    return plan(plain.info().address, plain_there, kBlock, pairs);
  }

  Agent agent;
  Pin shared, plain;
  Peer peer;
  std::uint64_t shared_there = 0, plain_there = 0;
};

void move(Transfer& planned) {
  must(planned.post());
  must(planned.wait(kLong));
}

void plainLoop(const Places& pairs, const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < pairs.here.size(); ++i)
    std::memcpy(to + pairs.there[i] * kBlock, from + pairs.here[i] * kBlock, kBlock);
}
void wideLoop(const Places& pairs, const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < pairs.here.size(); ++i)
    base::copyWide(to + pairs.there[i] * kBlock, from + pairs.here[i] * kBlock, kBlock);
  base::finishWide();
}
void cmaLoop(int pid, const Places& pairs, const std::byte* from, std::uint64_t to) {
  std::array<iovec, 1024> here, there;
  for (std::size_t first = 0; first < pairs.here.size(); first += here.size()) {
    const std::size_t count = std::min(here.size(), pairs.here.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      here[i] = {const_cast<std::byte*>(from + pairs.here[first + i] * kBlock), kBlock};
      there[i] = {reinterpret_cast<void*>(to + pairs.there[first + i] * kBlock), kBlock};
    }
    if (::process_vm_writev(pid, here.data(), count, there.data(), count, 0) !=
        static_cast<ssize_t>(count * kBlock))
      die("process_vm_writev");
  }
}

struct Bench {
  Board& board;
  std::span<const std::byte> card;
  int owner, event, rounds;
  const base::SharedMemory &here, &there;
  std::byte *from, *to, *plain;  // for the bare loops
  Side& one;
  Side& two;
};

void measureWarm(Bench& b) {
  const Places pairs = scattered(64, kArena / 2, 0);
  Transfer planned = b.one.planShared(kBlock, pairs);
  constexpr int kTimes = 200;
  measure("64 warm scattered 4 KiB blocks, one transfer", 64e-9 * kTimes, "ns a block",
          b.rounds * 4,
          {timed("memcpy loop",
                 [&](int) {
                   for (int i = 0; i < kTimes; ++i) plainLoop(pairs, b.from, b.to);
                 }),
           timed("local, mapped", [&](int) {
             for (int i = 0; i < kTimes; ++i) move(planned);
           })});
}

void measureCold(Bench& b) {
  std::vector<Places> sets;
  std::vector<Transfer> one, two, plain_one, plain_two;
  for (std::size_t i = 0; i < 8; ++i) {
    const Places& pairs = sets.emplace_back(scattered(16384, kArena, i));
    one.push_back(b.one.planShared(kBlock, pairs));
    two.push_back(b.two.planShared(kBlock, pairs));
    plain_one.push_back(b.one.planPlain(pairs));
    plain_two.push_back(b.two.planPlain(pairs));
  }
  // Each sample of a round uses another set, so that no sample finds blocks in the cache that an
  // earlier sample left there.
  const auto set = [](int turn) { return static_cast<std::size_t>(turn) % 8; };
  measure("16,384 x 4 KiB over 512 MiB", 16384e-9, "ns a block", b.rounds,
          {timed("memcpy loop", [&](int r) { plainLoop(sets[set(r)], b.from, b.to); }),
           timed("non-temporal loop", [&](int r) { wideLoop(sets[set(r + 2)], b.from, b.to); }),
           timed("local, mapped, 1 thread", [&](int r) { move(one[set(r + 4)]); }),
           timed("local, mapped, 2 threads", [&](int r) { move(two[set(r + 6)]); })});
  measure("16,384 x 4 KiB over 512 MiB, plain memory", 16384e-9, "ns a block", b.rounds,
          {timed("process_vm_writev loop",
                 [&](int r) { cmaLoop(b.owner, sets[set(r)], b.plain, b.one.plain_there); }),
           timed("local, cma, 1 thread", [&](int r) { move(plain_one[set(r + 3)]); }),
           timed("local, cma, 2 threads", [&](int r) { move(plain_two[set(r + 6)]); })});
}

void measureWhole(Bench& b, std::uint64_t bytes) {
  const auto count = static_cast<std::uint32_t>(kArena / bytes);
  std::vector<Transfer> one, two;
  for (std::uint32_t i = 0; i < count; ++i) {
    one.push_back(b.one.planShared(bytes, {{i}, {i}}));
    two.push_back(b.two.planShared(bytes, {{i}, {i}}));
  }
  const auto far = static_cast<int>(count / 4);  // samples must not share blocks
  const auto at = [=](int turn) { return static_cast<std::uint64_t>(turn) % count; };
  measure(fmt::format("one block of {} KiB", bytes >> 10U), 1e-6, "us", b.rounds,
          {timed("non-temporal",
                 [&](int r) {
                   base::copyWide(b.to + at(r) * bytes, b.from + at(r) * bytes, bytes);
                   base::finishWide();
                 }),
           timed("memcpy",
                 [&](int r) {
                   const std::uint64_t skip = at(r + far) * bytes;
                   std::memcpy(b.to + skip, b.from + skip, bytes);
                 }),
           timed("local, mapped, 1 thread", [&](int r) { move(one[at(r + 2 * far)]); }),
           timed("local, mapped, 2 threads", [&](int r) { move(two[at(r + 3 * far)]); })});
}

// Writes each block once through mappings that nobody has populated, so each page faults.
void measureFirstTouch(Bench& b) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 20U;
  constexpr std::uint32_t kCount = kArena / kBytes;
  const base::Fd file(::dup(b.there.fd()));
  const auto map = [&] {
    return must(base::SharedMemory::map(file, kArena, base::SharedMemory::Access::kReadWrite));
  };
  const auto wide = map(), cached = map();
  Side one(with(1, 0), b.card, b.here.segment(), b.plain),
      two(with(2, 0), b.card, b.here.segment(), b.plain);
  std::vector<Transfer> by_one, by_two;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    by_one.push_back(one.planShared(kBytes, {{i}, {i}}));
    by_two.push_back(two.planShared(kBytes, {{i}, {i}}));
  }
  const auto far = static_cast<int>(kCount / 4);  // samples must not share blocks of the source
  const auto at = [=](int turn) { return static_cast<std::size_t>(turn) % kCount; };
  measure("first touch of 1024 KiB", 1e-6, "us", std::min(b.rounds * 4, far * 4 - kWarmUp),
          {timed("non-temporal",
                 [&](int r) {
                   base::copyWide(wide.data() + at(r) * kBytes, b.from + at(r) * kBytes, kBytes);
                   base::finishWide();
                 }),
           timed("memcpy",
                 [&](int r) {
                   const std::uint64_t skip = at(r + far) * kBytes;
                   std::memcpy(cached.data() + skip, b.from + skip, kBytes);
                 }),
           timed("local, mapped, 1 thread", [&](int r) { move(by_one[at(r + 2 * far)]); }),
           timed("local, mapped, 2 threads", [&](int r) { move(by_two[at(r + 3 * far)]); })});
}

// Copies the same block again and again; each sample has its own block. The first of a round's
// copies brings the block back into the cache.
void measureWholeWarm(Bench& b, std::uint64_t bytes) {
  constexpr int kTimes = 8;
  Transfer planned = b.one.planShared(bytes, {{2}, {2}});
  const auto repeated = [=](auto copy) {
    return [=](int) mutable {
      copy();
      return secondsOf([&] {
        for (int i = 0; i < kTimes; ++i) copy();
      });
    };
  };
  measure(fmt::format("one warm block of {} KiB", bytes >> 10U), 1e-6 * kTimes, "us", b.rounds,
          {{"non-temporal", repeated([&, bytes] {
              base::copyWide(b.to, b.from, bytes);
              base::finishWide();
            })},
           {"memcpy", repeated([&, bytes] { std::memcpy(b.to + bytes, b.from + bytes, bytes); })},
           {"local, mapped, 1 thread", repeated([&] { move(planned); })}});
}

void measureSmall(Bench& b) {
  Transfer mapped = b.one.plan(b.one.shared.info().address, b.one.shared_there, 8);
  Transfer far = b.one.plan(b.one.plain.info().address, b.one.plain_there, 8);
  const iovec from{b.plain, 8};
  const iovec to{reinterpret_cast<void*>(b.one.plain_there), 8};
  measure("one 8-byte write, post to done", 1e-9, "ns", b.rounds * 1000,
          {timed("process_vm_writev",
                 [&](int) {
                   must(::process_vm_writev(b.owner, &from, 1, &to, 1, 0), "process_vm_writev");
                 }),
           timed("local, cma", [&](int) { move(far); }),
           timed("local, mapped", [&](int) { move(mapped); })});

  const auto noted = [&](Transfer& planned) {
    const auto start = Clock::now();
    must(planned.post({.with_note = true}));
    must(planned.wait(kLong));
    return secondsBetween(start, b.board.note.take());
  };
  b.board.turns.begin(kPolling);
  ::usleep(200'000);
  measure("8-byte write with a note, post to seen by a polling target", 1e-9, "ns", b.rounds * 20,
          {{"mapped + note", [&](int) { return noted(mapped); }}});
  b.board.turns.begin(kSleeping);
  ::usleep(200'000);
  const auto woken = [](Sighting& seen, const auto& send) {
    ::usleep(2000);  // until the receiver sleeps again
    const auto start = Clock::now();
    send();
    return secondsBetween(start, seen.take());
  };
  measure("waking a target that sleeps", 1e-9, "ns", b.rounds * 20,
          {{"bare eventfd",
            [&](int) {
              return woken(b.board.event, [&] {
                const std::uint64_t one = 1;
                must(::write(b.event, &one, sizeof one), "eventfd");
              });
            }},
           {"a note, in waitNote",
            [&](int) { return woken(b.board.note, [&] { must(b.one.peer.note("")); }); }},
           {"8-byte write with a note", [&](int) {
              ::usleep(2000);
              return noted(mapped);
            }}});
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "local_floor [ROUNDS [PART-OF-A-TITLE]]");
  only = given.text(1);
  Board& board = shared<Board>();
  const int event = ::eventfd(0, 0);
  const auto there = must(base::SharedMemory::allocate(kArena));
  const auto here = must(base::SharedMemory::allocate(kArena));
  std::memset(there.data(), 1, kArena);
  std::memset(here.data(), 2, kArena);
  const Child owner([&](Channel& parent) { ownMemory(board, there.segment(), parent); });
  const Child watcher([&](Channel&) { watchEvent(board, event); });
  const auto card = owner.receive();
  std::byte* plain = touched(kArena);
  Side one(with(1), card, here.segment(), plain), two(with(2), card, here.segment(), plain);
  for (const PeerWay& way : one.peer.ways()) fmt::print("{}: {}\n", way.backend, way.text);
  fmt::print("wide copies by {}; usable cores: {}\n", base::wideCopyName(),
             ::sysconf(_SC_NPROCESSORS_ONLN));
  for (Side* side : {&one, &two}) {  // maps all pages
    Transfer all = side->planShared(kArena, {});
    move(all);
  }
  board.turns.begin(kSleeping);
  Bench bench{board, card,  owner.pid(), event,        given.number(0, 15),
              here,  there, here.data(), there.data(), plain,
              one,   two};
  measureWarm(bench);
  measureCold(bench);
  for (const std::uint64_t kib : {64U, 256U, 1024U, 4096U, 16384U, 65536U}) {
    measureWhole(bench, kib << 10U);
    measureWholeWarm(bench, kib << 10U);
  }
  measureFirstTouch(bench);
  measureSmall(bench);
  board.turns.finish();
  watcher.kill();
}
