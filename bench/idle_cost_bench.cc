// The cost of an idle agent. Every figure is taken in new processes, forked before any agent is
// opened.
//   idle_cost_bench [PEERS] [SECONDS] [NETNS]
// The peers are agents of one process. With NETNS (a file of /run/netns) that process enters the
// network namespace, so that sessions use TCP as between hosts; VIADUCT_LISTEN has to reach it.
// The measurement of memory obeys VIADUCT_*: VIADUCT_BACKENDS=ofi VIADUCT_RAILS=127.0.0.1,127.0.0.2
// measures the memory of a peer over two rails of ofi.
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "forked.h"

namespace {

using namespace std::chrono_literals;
using namespace viaduct;
using namespace viaduct::bench;

double residentKib() {
  std::ifstream statm("/proc/self/statm");
  double size = 0;
  double resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

Settings named(std::string name) {
  auto settings = settingsFromEnvironment();
  if (!settings) std::abort();
  settings->name = std::move(name);
  return *std::move(settings);
}

struct Idle {
  double cpu_ms = 0, switches = 0;
};

Idle usage() {
  rusage self{};
  ::getrusage(RUSAGE_SELF, &self);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return {ms(self.ru_utime) + ms(self.ru_stime), static_cast<double>(self.ru_nvcsw)};
}

// The processor time and context switches that `body` costs this process.
Idle costOf(const std::function<void()>& body) {
  const Idle before = usage();
  body();
  const Idle after = usage();
  return {after.cpu_ms - before.cpu_ms, after.switches - before.switches};
}

// The hub, whose peers are agents of one other process. It reports its size at each request, and
// finally its cost while nothing happens.
Status hub(std::chrono::seconds seconds, int in, int out) {
  const double bare = residentKib();
  VIADUCT_TRY(auto agent, Agent::open(named("hub")));
  put(out, agent.exportCard());
  while (getValue<std::uint64_t>(in) != 0) putValue(out, residentKib() - bare);
  putValue(out, costOf([&] { std::this_thread::sleep_for(seconds); }));
  get(in);
  return Ok{};
}

Status crowd(const char* netns, int in, int out) {
  if (netns != nullptr && ::setns(Fd(::open(netns, O_RDONLY | O_CLOEXEC)).get(), CLONE_NEWNET) != 0)
    return systemError(Code::kInvalid, "setns", errno);
  const auto card = get(in);
  std::vector<Agent> agents;
  for (;;) {
    const auto wanted = getValue<std::uint64_t>(in);
    if (wanted == 0) return Ok{};
    while (agents.size() < wanted) {
      VIADUCT_TRY(auto agent, Agent::open(named("peer" + std::to_string(agents.size()))));
      VIADUCT_TRY(auto peer, agent.importCard(card));
      VIADUCT_CHECK(peer.ready(10s));
      agents.push_back(std::move(agent));
    }
    putValue(out, wanted);
  }
}

void printCost(const char* what, std::uint64_t peers, const Idle& cost,
               std::chrono::seconds seconds) {
  const auto s = static_cast<double>(seconds.count());
  std::printf("%s of %llu peers: %.2f ms of CPU a second, %.0f voluntary context switches\n", what,
              static_cast<unsigned long long>(peers), cost.cpu_ms / s, cost.switches / s);
}

void costOfPeers(std::uint64_t peers, std::chrono::seconds seconds, const char* netns) {
  const Child center([&](int in, int out) { return hub(seconds, in, out); });
  const auto card = get(center.in());
  const Child others([&](int in, int out) { return crowd(netns, in, out); });
  put(others.out(), card);
  const auto sizeWith = [&](std::uint64_t count) {
    putValue(others.out(), count);
    if (getValue<std::uint64_t>(others.in()) != count) std::exit(1);  // the child has said why
    putValue(center.out(), count);
    return getValue<double>(center.in());
  };
  double before = sizeWith(1);
  std::printf("an agent with one peer: %.0f KiB resident\n", before);
  std::uint64_t there = 1;
  for (const std::uint64_t quarter : {1, 2, 3, 4}) {
    const std::uint64_t count = 1 + peers * quarter / 4;
    if (count == there) continue;
    const double now = sizeWith(count);
    std::printf("  each of the peers %llu to %llu: %.1f KiB\n",
                static_cast<unsigned long long>(there + 1), static_cast<unsigned long long>(count),
                (now - before) / static_cast<double>(count - there));
    before = now;
    there = count;
  }
  putValue(center.out(), std::uint64_t{0});
  printCost("the hub", there, getValue<Idle>(center.in()), seconds);
  putValue(others.out(), std::uint64_t{0});
}

// The floor for the hub: as many heartbeats, sent and received by system calls alone. No thread
// waits for them, so they cause no wake-ups.
Status beat(const std::vector<Fd>& sockets, std::chrono::seconds seconds, int in, int out) {
  constexpr std::size_t kHeartbeat = 40;  // bytes
  std::array<std::byte, kHeartbeat> bytes{};
  get(in);
  const Duration every = Settings{}.detect / 4;
  const Idle cost = costOf([&] {
    auto due = Clock::now();
    for (const auto end = due + seconds; due < end; due += every) {
      std::this_thread::sleep_until(due);
      for (const Fd& socket : sockets) {
        if (::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) < 0) std::abort();
        static_cast<void>(::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT));
      }
    }
  });
  putValue(out, cost);
  get(in);
  return Ok{};
}

void bareHeartbeats(std::uint64_t peers, std::chrono::seconds seconds) {
  std::array<std::vector<Fd>, 2> ends;
  for (std::uint64_t i = 0; i < peers; ++i) {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) std::abort();
    for (std::size_t end : {0U, 1U}) ends[end].emplace_back(pair[end]);
  }
  const Child hub([&](int in, int out) { return beat(ends[0], seconds, in, out); });
  const Child crowd([&](int in, int out) { return beat(ends[1], seconds, in, out); });
  for (const Child* child : {&hub, &crowd}) putValue(child->out(), true);
  printCost("bare heartbeats", peers, getValue<Idle>(hub.in()), seconds);
}

// One of two connected agents, which sleeps in a wait.
Status idle(std::chrono::seconds seconds, int in, int out) {
  VIADUCT_TRY(auto agent, Agent::open({}));
  put(out, agent.exportCard());
  if (const auto card = get(in); card.size() > 1) {
    VIADUCT_TRY(auto peer, agent.importCard(card));
    VIADUCT_CHECK(peer.ready(10s));
  }
  putValue(out, costOf([&] { static_cast<void>(agent.waitNote(seconds)); }));
  get(in);
  return Ok{};
}

void idleCost(std::chrono::seconds seconds) {
  const auto body = [&](int in, int out) { return idle(seconds, in, out); };
  const Child one(body);
  const auto card = get(one.in());
  const Child two(body);
  get(two.in());
  put(two.out(), card);
  put(one.out(), std::array{std::byte{0}});  // an empty card: this agent is dialed
  for (const Child* child : {&one, &two}) {
    const Idle cost = getValue<Idle>(child->in());
    std::printf("idle for %lld s: %.2f ms CPU, %.0f voluntary context switches\n",
                static_cast<long long>(seconds.count()), cost.cpu_ms, cost.switches);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t peers = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200;
  const std::chrono::seconds seconds(argc > 2 ? std::atoi(argv[2]) : 10);
  costOfPeers(peers, seconds, argc > 3 ? argv[3] : nullptr);
  bareHeartbeats(1 + peers, seconds);
  idleCost(seconds);
  return 0;
}
