// The cost of an agent that does nothing. Every figure is taken in processes of their own, forked
// before any agent is opened.
//   idle_cost_bench [PEERS] [SECONDS]
// VIADUCT_* are heard where memory is measured: VIADUCT_BACKENDS=ofi
// VIADUCT_RAILS=127.0.0.1,127.0.0.2 says what a peer costs over two rails of ofi.
#include <sys/resource.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
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

// The hub says how large it is, each time it is asked; its peers are agents of one other process.
Status hub(int in, int out) {
  const double bare = residentKib();
  VIADUCT_TRY(auto agent, Agent::open(named("hub")));
  put(out, agent.exportCard());
  while (!get(in).empty()) putValue(out, residentKib() - bare);
  return Ok{};
}

Status crowd(int in, int out) {
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

void memoryOfPeers(std::uint64_t peers) {
  const Child center(hub);
  const auto card = get(center.in());
  const Child others(crowd);
  put(others.out(), card);
  const auto sizeWith = [&](std::uint64_t count) {
    putValue(others.out(), count);
    if (getValue<std::uint64_t>(others.in()) != count) std::exit(1);  // it has said why
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
  putValue(others.out(), std::uint64_t{0});
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

// One of two connected agents, that sleeps in a wait of its own.
Status idle(std::chrono::seconds seconds, int in, int out) {
  VIADUCT_TRY(auto agent, Agent::open({}));
  put(out, agent.exportCard());
  if (const auto card = get(in); card.size() > 1) {
    VIADUCT_TRY(auto peer, agent.importCard(card));
    VIADUCT_CHECK(peer.ready(10s));
  }
  const Idle before = usage();
  static_cast<void>(agent.waitNote(seconds));
  const Idle after = usage();
  putValue(out, Idle{after.cpu_ms - before.cpu_ms, after.switches - before.switches});
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
  put(one.out(), std::array{std::byte{0}});  // no card: it is dialed
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
  memoryOfPeers(peers);
  idleCost(seconds);
  return 0;
}
