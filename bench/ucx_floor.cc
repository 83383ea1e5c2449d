// Transfers over the ucx backend beside a bare loop of the same UCX calls (put, one flush a
// transfer, a target that only progresses its worker), turn by turn in one run, over the transport
// that UCX_TLS names. Usage: UCX_TLS=tcp UCX_NET_DEVICES=lo ucx_floor [rounds [milliseconds a
// turn]]
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

#include "backends/ucx/conduit.h"
#include "base/random.h"

namespace viaduct::bench {
namespace {

constexpr std::size_t kRegion = std::size_t{64} << 20U;

struct Workload {
  const char* name;
  std::size_t bytes, count;
};
constexpr Workload kWorkloads[] = {{"64 B x 1024", 64, 1024},
                                   {"4 KiB x 1024", 4096, 1024},
                                   {"64 KiB x 64", 65536, 64},
                                   {"1 MiB x 16", 1U << 20U, 16},
                                   {"64 MiB x 1", 64U << 20U, 1}};

enum class Mode : int { kIdle, kBare, kBackend, kQuit };
struct Board {  // what both processes see
  std::atomic<Mode> mode{Mode::kIdle}, child{Mode::kQuit};
};

[[noreturn]] void die(const std::string& what) {
  fmt::print(stderr, "ucx_floor: {}\n", what);
  std::exit(1);
}
template <class T>
T must(Result<T> result) {
  if (!result) die(result.error().text());
  return *std::move(result);
}
void must(const Status& status) {
  if (!status) die(status.error().text());
}

void tell(int session, std::span<const std::byte> bytes) {
  if (::send(session, bytes.data(), bytes.size(), 0) < 0) die("session");
}
std::vector<std::byte> hear(int session) {
  std::vector<std::byte> bytes(65536);
  const ssize_t got = ::recv(session, bytes.data(), bytes.size(), 0);
  if (got <= 0) die("session");
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

// One process's bare end: a worker, an endpoint, and the other's key.
class Bare {
 public:
  Bare(int session, std::byte* memory)
      : ucx_(*must(ucx::library())),
        context_(must(ucx::Context::open(ucx_, {}))),
        registered_(must(
            ucx::Registration::make(*context_, reinterpret_cast<std::uintptr_t>(memory), kRegion))),
        conduit_(must(ucx::Conduit::open(*context_))) {
    tell(session, conduit_->address());
    const auto worker = hear(session);
    tell(session, registered_.key());
    const auto key = hear(session);
    must(conduit_->join(worker));
    key_ = conduit_->keyOf(1, key);
    if (key_ == nullptr) die("the key");
  }
  void write(std::span<const Extent> from, std::span<const Extent> into) {
    for (std::size_t i = 0; i < from.size(); ++i)
      while (!conduit_->put(pointer(from[i].address), from[i].bytes, into[i].address, key_))
        progress();
    auto flush = conduit_->flush();
    while (!conduit_->ended(flush)) progress();
  }
  void progress() {
    conduit_->progress();
    if (conduit_->broken()) die(conduit_->whyBroken().text());
  }

 private:
  static const void* pointer(std::uint64_t address) {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
  }
  const ucx::Library& ucx_;
  std::unique_ptr<ucx::Context> context_;
  ucx::Registration registered_;
  std::unique_ptr<ucx::Conduit> conduit_;
  ucp_rkey_h key_ = nullptr;
};

// One process's agent with the region pinned, and the other as its peer.
class End {
 public:
  End(const char* name, int session, std::byte* memory)
      : agent_(must(Agent::open({.name = name, .backends = {"ucx"}}))),
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
  Agent agent_;
  Pin region_;
  std::optional<Peer> peer_;
};

// The blocks of a workload at seeded random places.
std::vector<Extent> blocksOf(const Workload& workload, const std::byte* base, std::uint64_t seed) {
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

void pinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  static_cast<void>(::sched_setaffinity(0, sizeof(set), &set));
}

[[noreturn]] void child(Board& board, int session, std::byte* memory) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pinTo(1);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  tell(session, std::as_bytes(std::span(&address, 1)));
  {
    Bare bare(session, memory);
    End end("second", session, memory);
    while (board.mode.load() != Mode::kQuit) {
      const Mode mode = board.mode.load();
      board.child.store(mode);
      while (board.mode.load(std::memory_order_acquire) == mode) {
        if (mode == Mode::kBare) bare.progress();
        if (mode == Mode::kBackend) end.poll();
        if (mode == Mode::kIdle) ::sched_yield();
      }
    }
  }
  ::_exit(0);
}

void switchTo(Board& board, Mode mode) {
  board.mode.store(mode);
  while (board.child.load() != mode) ::sched_yield();
}

// Seconds per transfer in one turn.
template <class F>
double turn(Duration length, F once) {
  once();
  std::size_t count = 0;
  const auto start = Clock::now();
  auto now = start;
  for (; now - start < length; now = Clock::now(), ++count) once();
  return std::chrono::duration<double>(now - start).count() / static_cast<double>(count);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(Board& board, Bare& bare, End& end, const std::byte* here, const std::byte* there,
             int rounds, Duration length) {
  fmt::print("{:<14} {:>10} {:>10} {:>22} {:>18}\n", "", "bare", "backend", "ratio (low..high)",
             "more, ns an op");
  for (const Workload& one : kWorkloads) {
    const auto from = blocksOf(one, here, 1), into = blocksOf(one, there, 2);
    Transfer transfer = end.write(from, into);
    std::vector<double> floor, ours, ratio;
    for (int round = -2; round < rounds; ++round) {  // two to warm up
      switchTo(board, Mode::kBare);
      const double bare_s = turn(length, [&] { bare.write(from, into); });
      switchTo(board, Mode::kBackend);
      const double our_s = turn(length, [&] {
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
    fmt::print("{:<14} {:>6.2f} GB/s {:>6.2f} GB/s {:>8.2f} ({:.2f}..{:.2f}) {:>16.0f}\n", one.name,
               bytes / median(floor), bytes / median(ours), median(ratio), ratio.front(),
               ratio.back(), (median(ours) - median(floor)) * 1e9 / static_cast<double>(one.count));
  }
}

std::byte* memory(std::size_t bytes, int flags) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) die("mmap");
  std::memset(at, 1, bytes);
  return static_cast<std::byte*>(at);
}

int run(int rounds, Duration length) {
  auto* const board = new (memory(4096, MAP_SHARED)) Board;
  int session[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, session) != 0) die("socketpair");
  // Every wait here spins: without the other process none of them would end.
  std::signal(SIGCHLD, [](int) { ::_exit(1); });
  const pid_t pid = ::fork();
  std::byte* const mine = memory(kRegion, MAP_PRIVATE);
  if (pid == 0) child(*board, session[1], mine);
  pinTo(0);
  const auto address = hear(session[0]);
  std::uintptr_t theirs = 0;
  std::memcpy(&theirs, address.data(), sizeof theirs);
  {
    Bare bare(session[0], mine);
    End end("first", session[0], mine);
    fmt::print("{}\n", end.way());
    measure(*board, bare, end, mine, reinterpret_cast<const std::byte*>(theirs), rounds, length);
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
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  const int turn_ms = argc > 2 ? std::atoi(argv[2]) : 40;
  return viaduct::bench::run(std::max(rounds, 1), std::chrono::milliseconds(turn_ms));
}
