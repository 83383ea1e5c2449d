// Compares the local backend with bare loops over the same kind of memory, interleaved in one run,
// for docs/measured/local.md. The second of its two processes only owns memory.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/shared_memory.h"
#include "base/wide_copy.h"
#include "must.h"

namespace {

using namespace viaduct;
using namespace std::chrono_literals;

constexpr std::uint64_t kArena = std::uint64_t{512} << 20U;
constexpr std::uint64_t kBlock = 4096;

struct Sample {
  std::string name;
  std::function<double(int round)> run;  // returns nanoseconds
  std::vector<double> wall = {}, cpu = {};
};

constexpr int kWarmUp = 8;  // uses every block of every set once

std::string only;  // skips the measurements whose title does not contain it

double cpuNow() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double nowNs() {
  return static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count());
}

template <class F>
Sample timed(std::string name, F work) {
  return {std::move(name), [work](int round) {
            const double start = nowNs();
            work(round);
            return nowNs() - start;
          }};
}

double quantile(const std::vector<double>& sorted, double p) {
  return sorted[static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1))];
}

// Runs every sample once per round, in turn, so that changes of the machine's speed affect all
// alike. Ratios are to the first sample. CPU time is this process's, so it is valid on a busy
// machine as well.
void measure(const std::string& title, double divide, const char* unit, int rounds,
             std::vector<Sample> samples) {
  if (title.find(only) == std::string::npos) return;
  for (int round = -kWarmUp; round < rounds; ++round)
    for (Sample& sample : samples) {
      const double cpu = cpuNow();
      const double took = sample.run(round + kWarmUp);
      if (round < 0) continue;
      sample.wall.push_back(took / divide);
      sample.cpu.push_back((cpuNow() - cpu) / divide);
    }
  std::printf("%s (%d rounds, %s)\n", title.c_str(), rounds, unit);
  std::printf("  %-28s %9s %9s %9s %9s %7s %7s %9s %7s\n", "", "median", "best", "p10", "p90",
              "ratio", "of best", "cpu", "ratio");
  double floor = 0, floor_best = 0, floor_cpu = 0;
  for (Sample& sample : samples) {
    std::ranges::sort(sample.wall);
    std::ranges::sort(sample.cpu);
    const double median = quantile(sample.wall, 0.5), best = sample.wall.front();
    const double cpu = quantile(sample.cpu, 0.5);
    if (floor == 0) floor = median, floor_best = best, floor_cpu = cpu;
    std::printf("  %-28s %9.1f %9.1f %9.1f %9.1f %7.3f %7.3f %9.1f %7.3f\n", sample.name.c_str(),
                median, best, quantile(sample.wall, 0.1), quantile(sample.wall, 0.9),
                median / floor, best / floor_best, cpu, cpu / floor_cpu);
  }
  std::fflush(stdout);
}

// The block numbers of a copy, in both arenas.
struct Pairs {
  std::vector<std::uint32_t> here, there;
};
// Numbers of blocks of `span` bytes at random places. Different `part`s share no block.
Pairs scattered(std::size_t count, std::uint64_t span, std::size_t part) {
  const auto pick = [&](unsigned seed) {
    std::vector<std::uint32_t> all(span / kBlock);
    std::iota(all.begin(), all.end(), 0U);
    std::ranges::shuffle(all, std::mt19937_64(seed));
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(part * count);
    return std::vector(first, first + static_cast<std::ptrdiff_t>(count));
  };
  return {pick(1), pick(2)};
}

std::byte* plainArena() {
  auto* start = static_cast<std::byte*>(std::malloc(kArena));
  std::memset(start, 1, kArena);
  return start;
}

Settings with(std::uint32_t threads, std::uint64_t populate = Settings{}.populate) {
  Settings settings;
  settings.copy_threads = threads;
  settings.populate = populate;
  return settings;
}

// Shared by all processes: each one's kind of wait, and the time at which it saw the message.
struct Board {
  std::atomic<int> mode{0};  // 0: sleep in waitNote, 1: spin on takeNote, 2: over
  std::atomic<double> note_seen{0}, event_seen{0};
  std::atomic<std::uint64_t> card_bytes{0};
  std::array<std::byte, 65536> card;
};

// Waits for a process's time mark and takes it. The wait spins, because a sleep sets a timer. In a
// virtual machine, that timer occupies the core on which the other process may be about to wake.
double collect(std::atomic<double>& mark) {
  double at = 0;
  while ((at = mark.load(std::memory_order_acquire)) == 0) {
  }
  mark = 0;
  return at;
}

// The process at the other end, which owns memory and receives notes. `memory` is allocated
// beforehand as Agent::allocate does, so that the bare loops write to the same pages.
void ownMemory(Board& board, const Segment& memory) {
  Agent agent = must(Agent::open(with(1)));
  Pin shared = must(agent.pin(memory, "shared"));
  Pin plain = must(agent.pin(Segment::host(plainArena(), kArena), "plain"));
  const auto card = agent.exportCard();
  std::ranges::copy(card, board.card.begin());
  board.card_bytes = card.size();
  while (board.mode != 2) {
    if (board.mode == 1) {
      agent.poll();
      if (agent.takeNote()) board.note_seen = nowNs();
    } else if (agent.waitNote(100ms)) {
      board.note_seen = nowNs();
    }
  }
}

void watchEvent(Board& board, int event) {
  std::uint64_t count = 0;
  while (board.mode != 2 && ::read(event, &count, sizeof count) == sizeof count)
    board.event_seen = nowNs();
}

// One agent here, with its memory and the peer's memory.
struct Side {
  Side(const Settings& settings, const Board& board, const Segment& memory, std::byte* plain_start)
      : agent(must(Agent::open(settings))),
        shared(must(agent.pin(memory))),
        plain(must(agent.pin(Segment::host(plain_start, kArena)))),
        peer(must(agent.importCard(std::span(board.card).first(board.card_bytes)))) {
    must(peer.ready(10s));
    shared_there = must(peer.waitPin("shared", 10s)).address;
    plain_there = must(peer.waitPin("plain", 10s)).address;
  }
  Transfer plan(std::uint64_t here, std::uint64_t there, std::uint64_t bytes,
                const Pairs& pairs = {{0}, {0}}) {
    const std::uint64_t count = kArena / bytes;
    return must(agent.plan(
        OpKind::kWrite, peer,
        {must(Blocks::strided({.base = here, .bytes = bytes, .count = count})), pairs.here},
        {must(Blocks::strided({.base = there, .bytes = bytes, .count = count})), pairs.there},
        {.require = "backend:local"}));
  }
  Transfer planShared(std::uint64_t bytes, const Pairs& pairs) {
    return plan(shared.info().address, shared_there, bytes, pairs);
  }
  Transfer planPlain(const Pairs& pairs) {
    return plan(plain.info().address, plain_there, kBlock, pairs);
  }

  Agent agent;
  Pin shared, plain;
  Peer peer;
  std::uint64_t shared_there = 0, plain_there = 0;
};

void transfer(Transfer& planned) {
  must(planned.post());
  must(planned.wait(60s));
}

void plainLoop(const Pairs& pairs, const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < pairs.here.size(); ++i)
    std::memcpy(to + pairs.there[i] * kBlock, from + pairs.here[i] * kBlock, kBlock);
}
void wideLoop(const Pairs& pairs, const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < pairs.here.size(); ++i)
    base::copyWide(to + pairs.there[i] * kBlock, from + pairs.here[i] * kBlock, kBlock);
  base::finishWide();
}
void cmaLoop(int pid, const Pairs& pairs, const std::byte* from, std::uint64_t to) {
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
  int owner, event, rounds;
  const base::SharedMemory &here, &there;
  std::byte *from, *to, *plain;  // for the bare loops
  Side& one;
  Side& two;
};

void measureWarm(Bench& b) {
  const Pairs pairs = scattered(64, kArena / 2, 0);
  Transfer planned = b.one.planShared(kBlock, pairs);
  constexpr int kTimes = 200;
  measure("64 warm scattered 4 KiB blocks, one transfer", 64.0 * kTimes, "ns a block", b.rounds * 4,
          {timed("memcpy loop",
                 [&](int) {
                   for (int i = 0; i < kTimes; ++i) plainLoop(pairs, b.from, b.to);
                 }),
           timed("local, mapped", [&](int) {
             for (int i = 0; i < kTimes; ++i) transfer(planned);
           })});
}

void measureCold(Bench& b) {
  std::vector<Pairs> sets;
  std::vector<Transfer> one, two, plain_one, plain_two;
  for (std::size_t i = 0; i < 8; ++i) {
    const Pairs& pairs = sets.emplace_back(scattered(16384, kArena, i));
    one.push_back(b.one.planShared(kBlock, pairs));
    two.push_back(b.two.planShared(kBlock, pairs));
    plain_one.push_back(b.one.planPlain(pairs));
    plain_two.push_back(b.two.planPlain(pairs));
  }
  // Each sample of a round takes another set, so none finds blocks in the cache that another left
  // there.
  const auto set = [](int turn) { return static_cast<std::size_t>(turn) % 8; };
  measure("16,384 x 4 KiB over 512 MiB", 16384, "ns a block", b.rounds,
          {timed("memcpy loop", [&](int r) { plainLoop(sets[set(r)], b.from, b.to); }),
           timed("non-temporal loop", [&](int r) { wideLoop(sets[set(r + 2)], b.from, b.to); }),
           timed("local, mapped, 1 thread", [&](int r) { transfer(one[set(r + 4)]); }),
           timed("local, mapped, 2 threads", [&](int r) { transfer(two[set(r + 6)]); })});
  measure("16,384 x 4 KiB over 512 MiB, plain memory", 16384, "ns a block", b.rounds,
          {timed("process_vm_writev loop",
                 [&](int r) { cmaLoop(b.owner, sets[set(r)], b.plain, b.one.plain_there); }),
           timed("local, cma, 1 thread", [&](int r) { transfer(plain_one[set(r + 3)]); }),
           timed("local, cma, 2 threads", [&](int r) { transfer(plain_two[set(r + 6)]); })});
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
  measure(fmt::format("one block of {} KiB", bytes >> 10U), 1000, "us", b.rounds,
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
           timed("local, mapped, 1 thread", [&](int r) { transfer(one[at(r + 2 * far)]); }),
           timed("local, mapped, 2 threads", [&](int r) { transfer(two[at(r + 3 * far)]); })});
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
  Side one(with(1, 0), b.board, b.here.segment(), b.plain),
      two(with(2, 0), b.board, b.here.segment(), b.plain);
  std::vector<Transfer> by_one, by_two;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    by_one.push_back(one.planShared(kBytes, {{i}, {i}}));
    by_two.push_back(two.planShared(kBytes, {{i}, {i}}));
  }
  const auto far = static_cast<int>(kCount / 4);  // samples must not share blocks of the source
  const auto at = [=](int turn) { return static_cast<std::size_t>(turn) % kCount; };
  measure("first touch of 1024 KiB", 1000, "us", std::min(b.rounds * 4, far * 4 - kWarmUp),
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
           timed("local, mapped, 1 thread", [&](int r) { transfer(by_one[at(r + 2 * far)]); }),
           timed("local, mapped, 2 threads", [&](int r) { transfer(by_two[at(r + 3 * far)]); })});
}

// Copies the same block again and again; each sample has its own block. The first of a round's
// copies brings the block back into the cache.
void measureWholeWarm(Bench& b, std::uint64_t bytes) {
  constexpr int kTimes = 8;
  Transfer planned = b.one.planShared(bytes, {{2}, {2}});
  const auto repeated = [=](auto copy) {
    return [=](int) mutable {
      copy();
      const double start = nowNs();
      for (int i = 0; i < kTimes; ++i) copy();
      return nowNs() - start;
    };
  };
  measure(fmt::format("one warm block of {} KiB", bytes >> 10U), 1000 * kTimes, "us", b.rounds,
          {{"non-temporal", repeated([&, bytes] {
              base::copyWide(b.to, b.from, bytes);
              base::finishWide();
            })},
           {"memcpy", repeated([&, bytes] { std::memcpy(b.to + bytes, b.from + bytes, bytes); })},
           {"local, mapped, 1 thread", repeated([&] { transfer(planned); })}});
}

void measureSmall(Bench& b) {
  Transfer mapped = b.one.plan(b.one.shared.info().address, b.one.shared_there, 8);
  Transfer far = b.one.plan(b.one.plain.info().address, b.one.plain_there, 8);
  const iovec from{b.plain, 8};
  const iovec to{reinterpret_cast<void*>(b.one.plain_there), 8};
  measure("one 8-byte write, post to done", 1, "ns", b.rounds * 1000,
          {timed("process_vm_writev",
                 [&](int) {
                   if (::process_vm_writev(b.owner, &from, 1, &to, 1, 0) != 8)
                     die("process_vm_writev");
                 }),
           timed("local, cma", [&](int) { transfer(far); }),
           timed("local, mapped", [&](int) { transfer(mapped); })});

  const auto noted = [&](Transfer& planned) {
    const double start = nowNs();
    must(planned.post({.with_note = true}));
    must(planned.wait(10s));
    return collect(b.board.note_seen) - start;
  };
  b.board.mode = 1;
  ::usleep(200'000);
  measure("8-byte write with a note, post to seen by a polling target", 1, "ns", b.rounds * 20,
          {{"mapped + note", [&](int) { return noted(mapped); }}});
  b.board.mode = 0;
  ::usleep(200'000);
  measure("waking a target that sleeps", 1, "ns", b.rounds * 20,
          {{"bare eventfd",
            [&](int) {
              ::usleep(2000);  // until the receiver sleeps again
              const std::uint64_t one = 1;
              const double start = nowNs();
              if (::write(b.event, &one, sizeof one) != sizeof one) die("eventfd");
              return collect(b.board.event_seen) - start;
            }},
           {"a note, in waitNote",
            [&](int) {
              ::usleep(2000);
              const double start = nowNs();
              must(b.one.peer.note(""));
              return collect(b.board.note_seen) - start;
            }},
           {"8-byte write with a note", [&](int) {
              ::usleep(2000);
              return noted(mapped);
            }}});
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

}  // namespace

// local_floor [rounds] [part of a title]
int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  if (argc > 2) only = argv[2];
  void* shared =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Board& board = *new (shared) Board;
  const int event = ::eventfd(0, 0);
  const auto there = must(base::SharedMemory::allocate(kArena));
  const auto here = must(base::SharedMemory::allocate(kArena));
  std::memset(there.data(), 1, kArena);
  std::memset(here.data(), 2, kArena);
  const int owner = forked([&] { ownMemory(board, there.segment()); });
  const int watcher = forked([&] { watchEvent(board, event); });
  while (board.card_bytes == 0) ::usleep(1000);
  {
    std::byte* plain = plainArena();
    Side one(with(1), board, here.segment(), plain), two(with(2), board, here.segment(), plain);
    for (const PeerWay& way : one.peer.ways())
      std::printf("%s: %s\n", way.backend.c_str(), way.text.c_str());
    std::printf("wide copies by %s; usable cores: %ld\n", base::wideCopyName(),
                ::sysconf(_SC_NPROCESSORS_ONLN));
    for (Side* side : {&one, &two}) {  // maps all pages
      Transfer all = side->planShared(kArena, {{0}, {0}});
      transfer(all);
    }
    Bench bench{board,       owner,        event, rounds, here, there,
                here.data(), there.data(), plain, one,    two};
    measureWarm(bench);
    measureCold(bench);
    for (const std::uint64_t kib : {64U, 256U, 1024U, 4096U, 16384U, 65536U}) {
      measureWhole(bench, kib << 10U);
      measureWholeWarm(bench, kib << 10U);
    }
    measureFirstTouch(bench);
    measureSmall(bench);
  }
  board.mode = 2;
  const std::uint64_t one = 1;
  if (::write(event, &one, sizeof one) != sizeof one) die("eventfd");
  ::waitpid(owner, nullptr, 0);
  ::waitpid(watcher, nullptr, 0);
  return 0;
}
