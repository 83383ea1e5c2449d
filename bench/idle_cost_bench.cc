// The cost of an idle agent. Every figure is taken in new processes, forked before any agent is
// opened.
//   idle_cost_bench [PEERS] [SECONDS] [NETNS]
// The peers are agents of one process. With NETNS (a file of /run/netns) that process enters the
// network namespace, so that sessions use TCP as between hosts; VIADUCT_LISTEN has to reach it.
// The measurement of memory obeys VIADUCT_*: VIADUCT_BACKENDS=ofi VIADUCT_RAILS=127.0.0.1,127.0.0.2
// measures the memory of a peer over two rails of ofi.
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using std::chrono::seconds;

Settings named(std::string name) {
  Settings settings = must(settingsFromEnvironment());
  settings.name = std::move(name);
  return settings;
}

struct Idle {
  double cpu_ms = 0, switches = 0;
};

Idle usage() {
  rusage self{};
  ::getrusage(RUSAGE_SELF, &self);
  return {1e3 * processorSeconds(), static_cast<double>(self.ru_nvcsw)};
}

// The processor time and context switches that `body` costs this process.
template <class Body>
Idle costOf(const Body& body) {
  const Idle before = usage();
  body();
  const Idle after = usage();
  return {after.cpu_ms - before.cpu_ms, after.switches - before.switches};
}

// The hub, whose peers are agents of one other process. It reports its size at each request, and
// finally its cost while nothing happens.
void hub(seconds length, const Channel& parent) {
  const double bare = residentKiB();
  Agent agent = must(Agent::open(named("hub")));
  parent.send(agent.exportCard());
  while (parent.receiveValue<std::uint64_t>() != 0) parent.sendValue(residentKiB() - bare);
  parent.sendValue(costOf([&] { std::this_thread::sleep_for(length); }));
  parent.receive();
}

void crowd(const std::string& network, const Channel& parent) {
  if (!network.empty()) enterNetwork(network);
  const auto card = parent.receive();
  std::vector<Agent> agents;
  while (const auto wanted = parent.receiveValue<std::uint64_t>()) {
    while (agents.size() < wanted) {
      agents.push_back(must(Agent::open(named(fmt::format("peer{}", agents.size())))));
      must(must(agents.back().importCard(card)).ready(kLong));
    }
    parent.sendValue(wanted);
  }
}

void printCost(const char* what, std::uint64_t peers, const Idle& cost, seconds length) {
  const auto s = static_cast<double>(length.count());
  fmt::print("{} of {} peers: {:.2f} ms of CPU a second, {:.0f} voluntary context switches\n", what,
             peers, cost.cpu_ms / s, cost.switches / s);
}

void costOfPeers(std::uint64_t peers, seconds length, const std::string& network) {
  const Child center([&](Channel& parent) { hub(length, parent); });
  const auto card = center.receive();
  const Child others([&](Channel& parent) { crowd(network, parent); });
  others.send(card);
  const auto sizeWith = [&](std::uint64_t count) {
    others.sendValue(count);
    others.receiveValue<std::uint64_t>();
    center.sendValue(count);
    return center.receiveValue<double>();
  };
  double before = sizeWith(1);
  fmt::print("an agent with one peer: {:.0f} KiB resident\n", before);
  std::uint64_t there = 1;
  for (const std::uint64_t quarter : {1U, 2U, 3U, 4U}) {
    const std::uint64_t count = 1 + peers * quarter / 4;
    if (count == there) continue;
    const double now = sizeWith(count);
    fmt::print("  each of the peers {} to {}: {:.1f} KiB\n", there + 1, count,
               (now - before) / static_cast<double>(count - there));
    before = now;
    there = count;
  }
  center.sendValue(std::uint64_t{0});
  printCost("the hub", there, center.receiveValue<Idle>(), length);
  others.sendValue(std::uint64_t{0});
}

// The floor for the hub: as many heartbeats, sent and received by system calls alone. No thread
// waits for them, so they cause no wake-ups.
void beat(const std::vector<Fd>& sockets, seconds length, const Channel& parent) {
  constexpr std::size_t kHeartbeat = 40;  // bytes
  std::array<std::byte, kHeartbeat> bytes{};
  parent.receive();
  const Duration every = Settings{}.detect / 4;
  parent.sendValue(costOf([&] {
    auto due = Clock::now();
    for (const auto end = due + length; due < end; due += every) {
      std::this_thread::sleep_until(due);
      for (const Fd& socket : sockets) {
        must(::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT), "send");
        static_cast<void>(::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT));
      }
    }
  }));
  parent.receive();
}

void bareHeartbeats(std::uint64_t peers, seconds length) {
  std::array<std::vector<Fd>, 2> ends;
  for (std::uint64_t i = 0; i < peers; ++i) {
    std::array<int, 2> pair{};
    must(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), "socketpair");
    for (std::size_t end : {0U, 1U}) ends[end].emplace_back(pair[end]);
  }
  const Child hub([&](Channel& parent) { beat(ends[0], length, parent); });
  const Child crowd([&](Channel& parent) { beat(ends[1], length, parent); });
  for (const Child* child : {&hub, &crowd}) child->sendValue(true);
  const Idle cost = hub.receiveValue<Idle>();
  crowd.receiveValue<Idle>();
  printCost("bare heartbeats", peers, cost, length);
}

// One of two connected agents, which sleeps in a wait.
void idle(seconds length, const Channel& parent) {
  Agent agent = must(Agent::open({}));
  parent.send(agent.exportCard());
  // The agent that receives only one byte does not dial: the other agent dials it.
  if (const auto card = parent.receive(); card.size() > 1)
    must(must(agent.importCard(card)).ready(kLong));
  parent.sendValue(costOf([&] { static_cast<void>(agent.waitNote(length)); }));
  parent.receive();
}

void idleCost(seconds length) {
  const auto body = [&](Channel& parent) { idle(length, parent); };
  const Child one(body), two(body);
  const auto card = one.receive();
  two.receive();
  two.send(card);
  one.sendValue(true);
  for (const Child* child : {&one, &two}) {
    const Idle cost = child->receiveValue<Idle>();
    fmt::print("idle for {} s: {:.2f} ms CPU, {:.0f} voluntary context switches\n", length.count(),
               cost.cpu_ms, cost.switches);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "idle_cost_bench [PEERS [SECONDS [NETNS]]]");
  const auto peers = given.number<std::uint64_t>(0, 200);
  const seconds length(given.number(1, 10));
  costOfPeers(peers, length, given.text(2));
  bareHeartbeats(1 + peers, length);
  idleCost(length);
}
