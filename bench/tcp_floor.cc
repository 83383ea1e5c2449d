// Compares transfers over the tcp backend with a bare sendmsg/recvmsg loop over one socket, turn by
// turn in one run.   tcp_floor [ROUNDS [MILLISECONDS]]
#include <thread>

#include "fabric_floor.h"
#include "tcp_floor_bare.h"

namespace viaduct::bench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kPings = 500;  // pings per turn
constexpr auto kPause = std::chrono::microseconds(300);
// Both loops speed up for up to three seconds after their start, independently of the turns:
// docs/measured/tcp.md.
constexpr auto kWarmUp = std::chrono::seconds(3);

constexpr Workload kWorkloads[] = {{"4 KiB x 1024", 4096, 1024},
                                   {"64 KiB x 64", 65536, 64},
                                   {"1 MiB x 16", 1U << 20U, 16},
                                   {"64 MiB x 1", 64U << 20U, 1}};

BarePair sockets;  // made before the fork

class Bare {
 public:
  explicit Bare(const BareEnd& end) : fd_((end.leads ? sockets.a : sockets.b).get()) {}
  void write(std::span<const Extent> from, std::span<const Extent>) {
    bareSend(fd_, from, scratch_);
  }
  template <class Over>
  void serve(std::span<const Extent> into, const Over& over) {
    while (bareReceive(fd_, into, scratch_, over)) {
    }
  }
  void ping() const { barePing(fd_); }
  void pong() const { barePong(fd_); }

 private:
  const int fd_;
  std::vector<iovec> scratch_;
};

// Pings of 8 bytes, from one process's second word to the other one's first word. The words lie
// behind the region.
enum PingTurn { kBarePing = Floor<Bare>::kFurtherTurns, kPing, kPingAsleep };

struct Words {
  explicit Words(const Target& target)
      : first(*reinterpret_cast<volatile std::uint64_t*>(target.memory.data() + place(target))),
        second(*(&first + 1)) {}
  static std::uint64_t place(const Target& target) { return target.memory.size() - kPage; }
  // Plans the copy from the second word here to the first word at the peer.
  static Transfer ping(Target& from, const Peer& peer, std::uint64_t there) {
    const auto word = [&](std::uint64_t at) {
      return blocks({.base = at + place(from), .bytes = 8, .count = 1});
    };
    return must(from.agent.plan(OpKind::kWrite, peer, word(from.here() + 8), word(there),
                                {.require = "backend:tcp"}));
  }

  volatile std::uint64_t& first;
  volatile std::uint64_t& second;
};

void finish(Transfer& transfer) {
  while (transfer.poll() == TransferState::kRunning) {
  }
  if (transfer.state() == TransferState::kFailed) die(transfer.end().error->text());
}

void answerPings(Target& target, const Turns& turns) {
  const Peer peer = must(target.agent.peer("source"));
  Transfer back = Words::ping(target, peer, must(peer.waitPin(kMemory, kLong)).address);
  const Words mine(target);
  for (std::uint64_t seen = 0; !turns.over(kPing);) {
    target.agent.poll();
    if (mine.first == seen) continue;
    seen = mine.first;
    mine.second = seen;
    finish(back);
    must(back.post());
  }
  finish(back);
  mine.first = 0;
}

void follow(int turn, const Bare& bare, Target& target, const Turns& turns) {
  if (turn == kBarePing)
    for (int i = 0; i < kPings; ++i) bare.pong();
  if (turn == kPing) answerPings(target, turns);
  while (turn == kPingAsleep && !turns.over(turn))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Half the median time of `once`, in us. A pause before each call lets the other end fall asleep.
template <class Once>
double halfOf(Duration pause, const Once& once) {
  return inTurns({kPings}, {[&](int) {
                   if (pause.count() > 0) std::this_thread::sleep_for(pause);
                   return 0.5e6 * secondsOf(once);
                 }})[0]
      .median();
}

void lead(int rounds, const Bare& bare, Source& source, Turns& turns) {
  Transfer there = Words::ping(source, source.peer, source.there);
  const Words mine(source);
  const auto pingBare = [&](Duration pause) {
    turns.begin(kBarePing);
    return halfOf(pause, [&] { bare.ping(); });
  };
  const auto pingByPolling = [&](int) {
    mine.first = 0;
    turns.begin(kPing);
    std::uint64_t count = 0;
    const double us = halfOf({}, [&] {
      finish(there);
      mine.second = ++count;
      must(there.post());
      while (mine.first != count) source.agent.poll();
    });
    finish(there);
    return us;
  };
  // Both ends sleep between posts, so that the other end's own thread has to wake.
  const auto pingAsleep = [&](int) {
    turns.begin(kPingAsleep);
    return halfOf(kPause, [&] { postAndWait(there); });
  };
  fmt::print("\n");
  Table table({words("us one way, p50", 14), spread("bare, blocking", 2), spread("backend", 2),
               spread("ratio", 2)});
  const auto [floor, polling] =
      inTurns({rounds}, {[&](int) { return pingBare({}); }, pingByPolling});
  table.row("8 B, polling", floor, polling, polling / floor);
  const auto [paused, asleep] =
      inTurns({rounds}, {[&](int) { return pingBare(kPause); }, pingAsleep});
  table.row("8 B, asleep", paused, asleep, asleep / paused);
}

}  // namespace
}  // namespace viaduct::bench

int main(int argc, char** argv) {
  using namespace viaduct::bench;
  const Arguments given(argc, argv, "tcp_floor [ROUNDS [MILLISECONDS]]");
  const int rounds = given.number(0, 21);
  sockets = BarePair::make();
  Floor<Bare>({.settings = {.backends = {"tcp"}},
               .workloads = kWorkloads,
               .region = std::size_t{256} << 20U,
               .further = kPage,
               .rounds = rounds,
               .turn = std::chrono::milliseconds(given.number(1, 50)),
               .warm_up = kWarmUp})
      .run([&](Bare& bare, Source& source, Turns& turns) { lead(rounds, bare, source, turns); },
           follow);
}
