// Compares a backend over a fabric library with a bare loop of the same library's calls, turn by
// turn in one run, between two processes. The including program supplies the bare loop. Threads:
// one.
#pragma once

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/random.h"

namespace viaduct::bench {

constexpr std::size_t kRegion = std::size_t{64} << 20U;

struct Workload {
  const char* name;
  std::size_t bytes, count;
};

enum class Mode : int { kIdle, kBare, kBackend, kQuit };
struct Board {  // shared by both processes
  std::atomic<Mode> mode{Mode::kIdle}, child{Mode::kQuit};
};

[[noreturn]] inline void die(const std::string& what) {
  fmt::print(stderr, "{}: {}\n", ::program_invocation_short_name, what);
  std::exit(1);
}
template <class T>
T must(Result<T> result) {
  if (!result) die(result.error().text());
  return *std::move(result);
}
inline void must(const Status& status) {
  if (!status) die(status.error().text());
}

inline void tell(int session, std::span<const std::byte> bytes) {
  if (::send(session, bytes.data(), bytes.size(), 0) < 0) die("session");
}
inline std::vector<std::byte> hear(int session) {
  std::vector<std::byte> bytes(65536);
  const ssize_t got = ::recv(session, bytes.data(), bytes.size(), 0);
  if (got <= 0) die("session");
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

// One process's agent with its pinned region, and the other process as its peer.
class End {
 public:
  End(Settings settings, const char* name, int session, std::byte* memory)
      : agent_(open(std::move(settings), name)),
        region_(must(agent_.pin(Segment::host(memory, kRegion)))) {
    tell(session, agent_.exportCard());
    peer_.emplace(must(agent_.importCard(hear(session))));
    must(peer_->ready(std::chrono::seconds(10)));
  }
  Transfer write(std::span<const Extent> from, std::span<const Extent> into) {
    return must(agent_.plan(OpKind::kWrite, *peer_, {must(Blocks::list(from)), {}},
                            {must(Blocks::list(into)), {}}));
  }
  void poll() { agent_.poll(); }
  std::string way() const { return peer_->ways().front().text; }

 private:
  static Agent open(Settings settings, const char* name) {
    settings.name = name;
    return must(Agent::open(settings));
  }
  Agent agent_;
  Pin region_;
  std::optional<Peer> peer_;
};

// The blocks of a workload at seeded random places.
inline std::vector<Extent> blocksOf(const Workload& workload, const std::byte* base,
                                    std::uint64_t seed) {
  std::vector<std::size_t> places(kRegion / workload.bytes);
  std::iota(places.begin(), places.end(), 0U);
  base::Random random(seed);
  for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random.below(i)]);
  std::vector<Extent> out;
  for (std::size_t i = 0; i < workload.count; ++i)
    out.push_back(
        {reinterpret_cast<std::uintptr_t>(base) + places[i] * workload.bytes, workload.bytes});
  return out;
}

inline void pinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  static_cast<void>(::sched_setaffinity(0, sizeof(set), &set));
}

inline std::byte* memory(std::size_t bytes, int flags) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) die("mmap");
  std::memset(at, 1, bytes);
  return static_cast<std::byte*>(at);
}

inline void switchTo(Board& board, Mode mode) {
  board.mode.store(mode);
  while (board.child.load() != mode) ::sched_yield();
}

// Seconds per transfer, measured over one turn.
template <class F>
double turn(Duration length, F once) {
  once();
  std::size_t count = 0;
  const auto start = Clock::now();
  auto now = start;
  for (; now - start < length; now = Clock::now(), ++count) once();
  return std::chrono::duration<double>(now - start).count() / static_cast<double>(count);
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// `Bare` is one process's end of the bare loop. Its constructor takes run()'s arguments, a session
// to the other end, and the region. write(from, into) returns when the bytes are there; progress()
// makes progress.
template <class Bare>
class Floor {
 public:
  Floor(Settings settings, std::span<const Workload> workloads, int rounds, Duration length)
      : settings_(std::move(settings)), workloads_(workloads), rounds_(rounds), length_(length) {}

  int run() {
    int session[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, session) != 0) die("socketpair");
    // Every wait here spins, and would never end without the other process.
    std::signal(SIGCHLD, [](int) { ::_exit(1); });
    const pid_t pid = ::fork();
    std::byte* const mine = memory(kRegion, MAP_PRIVATE);
    if (pid == 0) child(session[1], mine);
    pinTo(0);
    const auto address = hear(session[0]);
    std::uintptr_t theirs = 0;
    std::memcpy(&theirs, address.data(), sizeof theirs);
    {
      Bare bare(settings_, session[0], mine);
      End end(settings_, "first", session[0], mine);
      fmt::print("{}\n{:<14} {:>14} {:>14} {:>22} {:>18}\n", end.way(), "", "bare", "backend",
                 "ratio (low..high)", "more, ns an op");
      for (const Workload& one : workloads_)
        measure(one, bare, end, mine, reinterpret_cast<const std::byte*>(theirs));
    }
    std::signal(SIGCHLD, SIG_DFL);
    board_.mode.store(Mode::kQuit);
    ::waitpid(pid, nullptr, 0);
    return 0;
  }

 private:
  [[noreturn]] void child(int session, std::byte* mine) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    pinTo(1);
    const auto address = reinterpret_cast<std::uintptr_t>(mine);
    tell(session, std::as_bytes(std::span(&address, 1)));
    {
      Bare bare(settings_, session, mine);
      End end(settings_, "second", session, mine);
      while (board_.mode.load() != Mode::kQuit) {
        const Mode mode = board_.mode.load();
        board_.child.store(mode);
        while (board_.mode.load(std::memory_order_acquire) == mode) {
          if (mode == Mode::kBare) bare.progress();
          if (mode == Mode::kBackend) end.poll();
          if (mode == Mode::kIdle) ::sched_yield();
        }
      }
    }
    ::_exit(0);
  }

  void measure(const Workload& one, Bare& bare, End& end, const std::byte* here,
               const std::byte* there) {
    const auto from = blocksOf(one, here, 1), into = blocksOf(one, there, 2);
    Transfer transfer = end.write(from, into);
    std::vector<double> floor, ours, ratio;
    for (int round = -2; round < rounds_; ++round) {  // two rounds to warm up
      switchTo(board_, Mode::kBare);
      const double bare_s = turn(length_, [&] { bare.write(from, into); });
      switchTo(board_, Mode::kBackend);
      const double our_s = turn(length_, [&] {
        must(transfer.post());
        while (transfer.poll() == TransferState::kRunning) {
        }
        if (transfer.end().state != TransferState::kDone) die(transfer.end().error->text());
      });
      if (round < 0) continue;
      floor.push_back(bare_s);
      ours.push_back(our_s);
      ratio.push_back(bare_s / our_s);
    }
    const double bytes = static_cast<double>(one.bytes * one.count) / 1e9;
    std::sort(ratio.begin(), ratio.end());
    fmt::print("{:<14} {:>9.4f} GB/s {:>9.4f} GB/s {:>8.2f} ({:.2f}..{:.2f}) {:>16.0f}\n", one.name,
               bytes / median(floor), bytes / median(ours), median(ratio), ratio.front(),
               ratio.back(), (median(ours) - median(floor)) * 1e9 / static_cast<double>(one.count));
  }

  const Settings settings_;
  const std::span<const Workload> workloads_;
  const int rounds_;
  const Duration length_;
  Board& board_ = *new (memory(4096, MAP_SHARED)) Board;
};

}  // namespace viaduct::bench
