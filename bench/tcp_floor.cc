// Compares transfers over the tcp backend with a bare sendmsg/recvmsg loop over one socket, turn by
// turn in one run. Usage: tcp_floor [rounds [milliseconds a turn]]
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/random.h"
#include "tcp_floor_bare.h"

namespace viaduct::bench {
namespace {

constexpr std::size_t kRegion = std::size_t{256} << 20U;
constexpr std::size_t kPage = 4096;
constexpr int kPings = 500;  // pings per turn
constexpr unsigned kPause = 300;
// Both loops speed up for up to three seconds after their start, independently of the turns:
// docs/measured/tcp.md.
constexpr auto kWarmUp = std::chrono::milliseconds(3000);

struct Workload {
  const char* name;
  std::size_t bytes, count;
};
constexpr Workload kWorkloads[] = {{"4 KiB x 1024", 4096, 1024},
                                   {"64 KiB x 64", 65536, 64},
                                   {"1 MiB x 16", 1U << 20U, 16},
                                   {"64 MiB x 1", 64U << 20U, 1}};

enum class Mode : int { kIdle, kBare, kBackend, kBarePing, kBackendPing, kAsleep, kQuit };

// Shared by both processes.
struct Board {
  std::atomic<Mode> mode{Mode::kIdle};
  std::atomic<int> workload{0};          // or the number of pings
  std::atomic<Mode> child{Mode::kQuit};  // the child's present mode
};

struct Arena {
  std::byte* source;             // the parent's memory, for every copy
  std::byte* target;             // the child's memory
  volatile std::uint64_t* word;  // one in each process, where the other's ping arrives
};

// The blocks of a workload at seeded random places.
BlockList blocksOf(const Workload& workload, std::byte* base, std::uint64_t seed) {
  std::vector<std::size_t> places(kRegion / workload.bytes);
  std::iota(places.begin(), places.end(), 0U);
  base::Random random(seed);
  for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random.below(i)]);
  BlockList out;
  for (std::size_t i = 0; i < workload.count; ++i)
    out.push_back({base + places[i] * workload.bytes, workload.bytes});
  return out;
}

[[noreturn]] void die(const std::string& what) {
  fmt::print(stderr, "tcp_floor: {}\n", what);
  std::exit(1);
}

// One process's agent, with its region and word pinned, and the other process as its peer.
class End {
 public:
  End(bool first, int session, const Arena& arena)
      : agent_(must(Agent::open(settingsOf(first)))),
        region_(must(agent_.pin(Segment::host(first ? arena.source : arena.target, kRegion)))),
        word_(must(agent_.pin(Segment::host(const_cast<std::uint64_t*>(arena.word), kPage)))) {
    const auto card = agent_.exportCard();
    if (::send(session, card.data(), card.size(), 0) < 0) die("session");
    std::vector<std::byte> theirs(65536);
    const ssize_t got = ::recv(session, theirs.data(), theirs.size(), 0);
    if (got <= 0) die("session");
    peer_.emplace(must(agent_.importCard(std::span(theirs).first(static_cast<std::size_t>(got)))));
    if (auto ready = peer_->ready(std::chrono::seconds(10)); !ready) die(ready.error().text());
  }

  Transfer write(const BlockList& from, const BlockList& into) {
    return must(
        agent_.plan(OpKind::kWrite, *peer_, {selected(from), {}}, {selected(into), {}}, options()));
  }
  // Plans a copy of this process's second word to the other process's first word.
  Transfer ping(const Arena& arena) {
    auto* const word = reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(arena.word));
    return write({{word + 8, 8}}, {{word, 8}});
  }
  void poll() { agent_.poll(); }

 private:
  template <class T>
  static T must(Result<T> result) {
    if (!result) die(result.error().text());
    return *std::move(result);
  }
  static Settings settingsOf(bool first) {
    Settings settings;
    settings.name = first ? "first" : "second";
    settings.backends = {"tcp"};
    return settings;
  }
  static TransferOptions options() { return {.require = "backend:tcp", .on_end = {}}; }
  static Blocks selected(const BlockList& blocks) {
    std::vector<Extent> extents;
    for (const Block& one : blocks)
      extents.push_back({reinterpret_cast<std::uintptr_t>(one.at), one.bytes});
    return must(Blocks::list(extents));
  }

  Agent agent_;
  Pin region_, word_;
  std::optional<Peer> peer_;
};

void post(Transfer& transfer) {
  if (auto posted = transfer.post(); !posted) die(posted.error().text());
}
bool running(Transfer& transfer) {
  const TransferState state = transfer.poll();
  if (state == TransferState::kFailed) die(transfer.end().error->text());
  return state == TransferState::kRunning;
}

void pinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  static_cast<void>(::sched_setaffinity(0, sizeof(set), &set));
}

void childTurn(Board& board, Mode mode, End& end, int bare, const Arena& arena) {
  const auto over = [&] { return board.mode.load(std::memory_order_acquire) != mode; };
  BlockList blocks;
  std::vector<iovec> scratch;
  if (mode == Mode::kBare) blocks = blocksOf(kWorkloads[board.workload.load()], arena.target, 2);
  board.child.store(mode);
  if (mode == Mode::kBare)
    while (bareReceive(bare, blocks, scratch, over)) {
    }
  if (mode == Mode::kBackend)
    while (!over()) end.poll();
  if (mode == Mode::kBarePing) {
    for (int i = 0; i < board.workload.load(); ++i) barePong(bare);
  }
  while (mode == Mode::kAsleep && !over()) ::usleep(1000);
  if (mode == Mode::kBackendPing) {
    Transfer back = end.ping(arena);
    for (std::uint64_t seen = 0; !over();) {
      end.poll();
      if (*arena.word == seen) continue;
      seen = *arena.word;
      arena.word[1] = seen;
      while (running(back)) {
      }
      post(back);
    }
    while (running(back)) {
    }
    *arena.word = 0;
  }
}

[[noreturn]] void child(Board& board, int session, int bare, const Arena& arena) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pinTo(1);
  std::memset(arena.target, 2, kRegion);
  {
    End end(false, session, arena);
    for (Mode mode = Mode::kIdle; mode != Mode::kQuit; mode = board.mode.load()) {
      if (mode == Mode::kIdle) {
        board.child.store(Mode::kIdle);
        ::sched_yield();
        continue;
      }
      childTurn(board, mode, end, bare, arena);
      while (board.mode.load() == mode) ::sched_yield();
    }
  }
  ::_exit(0);
}

void switchTo(Board& board, Mode mode, int workload) {
  board.mode.store(Mode::kIdle);
  while (board.child.load() != Mode::kIdle) ::sched_yield();
  board.workload.store(workload);
  board.mode.store(mode);
  while (board.child.load() != mode) ::sched_yield();
}

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// GB/s, measured over one turn.
template <class F>
double turn(Duration length, std::size_t bytes, F once) {
  once();
  std::size_t done = 0;
  const auto start = Clock::now();
  auto now = start;
  std::vector<double> tm;
  do {
    once();
    done += bytes;
    auto n2 = Clock::now();
    tm.push_back(seconds(n2 - now) * 1e6);
    now = n2;
  } while (now - start < length);
  if (getenv("XT")) {
    for (double d : tm) fmt::print("{:.0f} ", d);
    fmt::print("\n");
  }
  return static_cast<double>(done) / seconds(now - start) / 1e9;
}

struct Spread {
  double low, median, high;
};
Spread spreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  return {at(0.1), at(0.5), at(0.9)};
}
std::string show(const std::vector<double>& values) {
  const Spread s = spreadOf(values);
  return fmt::format("{:6.2f} ({:.2f}..{:.2f})", s.median, s.low, s.high);
}

// One workload, in turns of both ways, until `over` is true.
template <class Over>
void turns(Board& board, End& end, int bare, const Arena& arena, int w, Duration length,
           Over over) {
  const Workload& workload = kWorkloads[w];
  const std::size_t bytes = workload.bytes * workload.count;
  const BlockList from = blocksOf(workload, arena.source, 1);
  const BlockList into = blocksOf(workload, arena.target, 2);
  Transfer transfer = end.write(from, into);
  std::vector<iovec> scratch;
  for (double floor = 0, ours = 0; !over(floor, ours);) {
    switchTo(board, Mode::kBare, w);
    floor = turn(length, bytes, [&] { bareSend(bare, from, scratch); });
    switchTo(board, Mode::kBackend, w);
    ours = turn(length, bytes, [&] {
      post(transfer);
      while (running(transfer)) {
      }
    });
  }
}

void bulk(Board& board, End& end, int bare, const Arena& arena, int rounds, Duration length) {
  fmt::print("{:<14} {:>24} {:>24} {:>24} {:>12}\n", "GB/s", "bare", "backend", "ratio",
             "ns a block");
  for (int w = 0; w < static_cast<int>(std::size(kWorkloads)); ++w) {
    const auto warm = Clock::now() + kWarmUp;
    turns(board, end, bare, arena, w, length, [&](double, double) { return Clock::now() >= warm; });
    std::vector<double> floor, ours, ratio;
    turns(board, end, bare, arena, w, length, [&](double bare_rate, double our_rate) {
      if (our_rate > 0) {
        floor.push_back(bare_rate);
        ours.push_back(our_rate);
        ratio.push_back(our_rate / bare_rate);
      }
      return static_cast<int>(ratio.size()) == rounds;
    });
    fmt::print("{:<14} {:>24} {:>24} {:>24} {:>12.0f}\n", kWorkloads[w].name, show(floor),
               show(ours), show(ratio),
               static_cast<double>(kWorkloads[w].bytes) / spreadOf(ours).median);
  }
}

// Half the median time of `once`. A pause before each call lets the other end fall asleep.
template <class F>
double p50(int count, F once, unsigned pause_us = 0) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    if (pause_us > 0) ::usleep(pause_us);
    const auto start = Clock::now();
    once();
    times.push_back(1e6 * seconds(Clock::now() - start) / 2);
  }
  return spreadOf(times).median;
}

void ping(Board& board, End& end, int bare, const Arena& arena, int rounds) {
  Transfer there = end.ping(arena);
  std::vector<double> floor, ours, ratio;
  std::uint64_t count = 0;
  for (int round = 0; round < rounds; ++round) {
    switchTo(board, Mode::kBarePing, kPings);
    floor.push_back(p50(kPings, [&] { barePing(bare); }));
    switchTo(board, Mode::kBackendPing, 0);
    count = 0;
    *arena.word = 0;
    ours.push_back(p50(kPings, [&] {
      while (running(there)) {
      }
      arena.word[1] = ++count;
      post(there);
      while (*arena.word != count) end.poll();
    }));
    while (running(there)) {
    }
    ratio.push_back(ours.back() / floor.back());
  }
  fmt::print("\n{:<14} {:>24} {:>24} {:>24}\n", "us one way, p50", "bare, blocking", "backend",
             "ratio");
  fmt::print("{:<14} {:>24} {:>24} {:>24}\n", "8 B, polling", show(floor), show(ours), show(ratio));
}

// Pings while both ends sleep between posts, so that the other end's own thread has to wake.
void pingAsleep(Board& board, End& end, int bare, const Arena& arena, int rounds) {
  Transfer there = end.ping(arena);
  std::vector<double> floor, ours, ratio;
  for (int round = 0; round < rounds; ++round) {
    switchTo(board, Mode::kBarePing, kPings);
    floor.push_back(p50(kPings, [&] { barePing(bare); }, kPause));
    switchTo(board, Mode::kAsleep, 0);
    ours.push_back(p50(
        kPings,
        [&] {
          post(there);
          if (auto done = there.wait(); !done) die(done.error().text());
        },
        kPause));
    ratio.push_back(ours.back() / floor.back());
  }
  fmt::print("{:<14} {:>24} {:>24} {:>24}\n", "8 B, asleep", show(floor), show(ours), show(ratio));
}

std::byte* memory(std::size_t bytes, int flags) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) die("mmap");
  return static_cast<std::byte*>(at);
}

int run(int rounds, Duration length) {
  auto* const board = new (memory(4096, MAP_SHARED)) Board;
  const Arena arena{memory(kRegion, MAP_PRIVATE), memory(kRegion, MAP_PRIVATE),
                    reinterpret_cast<volatile std::uint64_t*>(memory(4096, MAP_PRIVATE))};
  int session[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, session) != 0) die("socketpair");
  const BarePair bare = BarePair::make();
  // Every wait here spins, and would never end without the other process.
  std::signal(SIGCHLD, [](int) { ::_exit(1); });
  const pid_t pid = ::fork();
  if (pid == 0) child(*board, session[1], bare.b.get(), arena);
  pinTo(0);
  std::memset(arena.source, 1, kRegion);
  {
    End end(true, session[0], arena);
    if (const char* e = getenv("XSLEEP")) ::usleep(static_cast<unsigned>(atoi(e)) * 1000U);
    bulk(*board, end, bare.a.get(), arena, rounds, length);
    ping(*board, end, bare.a.get(), arena, rounds);
    pingAsleep(*board, end, bare.a.get(), arena, rounds);
  }
  std::signal(SIGCHLD, SIG_DFL);
  board->mode.store(Mode::kQuit);
  ::waitpid(pid, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace viaduct::bench

int main(int argc, char** argv) {
  static_cast<void>(std::setvbuf(stdout, nullptr, _IOLBF, 0));
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  const int turn_ms = argc > 2 ? std::atoi(argv[2]) : 50;
  return viaduct::bench::run(std::max(rounds, 1), std::chrono::milliseconds(turn_ms));
}
