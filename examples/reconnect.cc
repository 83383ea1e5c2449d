// A peer that leaves and comes back, while the other end keeps its agent, its memory and its code.
#include <viaduct/viaduct.h>

#include <cstdio>
#include <cstring>

using namespace std::chrono_literals;
using viaduct::Agent;
using viaduct::Blocks;
using viaduct::Ok;
using viaduct::Peer;
using viaduct::Pin;
using viaduct::Status;

namespace {

constexpr std::uint64_t kBytes = 64 << 10;

Status send(Agent& agent, const Pin& from, const Peer& peer) {
  VIADUCT_CHECK(peer.ready(10s));
  VIADUCT_TRY(auto inbox, peer.waitPin("inbox", 10s));
  VIADUCT_TRY(auto here,
              Blocks::strided({.base = from.info().address, .bytes = kBytes, .count = 1}));
  VIADUCT_TRY(auto there, Blocks::strided({.base = inbox.address, .bytes = kBytes, .count = 1}));
  VIADUCT_TRY(auto transfer, agent.plan(viaduct::OpKind::kWrite, peer, {here}, {there}));
  VIADUCT_CHECK(transfer.post());
  VIADUCT_CHECK(transfer.wait(10s));
  std::printf("life %llu of %s: %s\n", static_cast<unsigned long long>(peer.epoch()),
              peer.name().c_str(), transfer.path().text().c_str());
  return Ok{};
}

// One life of the worker: it connects to the engine, offers its memory, and receives data.
Status life(Agent& engine, const Pin& from) {
  VIADUCT_TRY(auto worker, Agent::open({.name = "worker"}));
  VIADUCT_TRY(auto inbox, worker.allocate(kBytes, {.label = "inbox"}));
  VIADUCT_TRY(auto boss, worker.importCard(engine.exportCard()));
  VIADUCT_CHECK(boss.ready(10s));
  VIADUCT_TRY(auto peer, engine.peer("worker"));
  return send(engine, from, peer);
}

Status run() {
  VIADUCT_TRY(auto engine, Agent::open({.name = "engine"}));
  VIADUCT_TRY(auto memory, engine.allocate(kBytes));
  std::memset(memory.data(), 'e', memory.size());

  VIADUCT_CHECK(life(engine, memory));
  VIADUCT_TRY(auto peer, engine.peer("worker"));
  VIADUCT_CHECK(peer.over(1, 10s));
  std::printf("the worker is %s\n", viaduct::peerStateName(peer.state()));
  return life(engine, memory);
}

}  // namespace

int main() {
  if (const Status done = run(); !done) {
    std::fprintf(stderr, "%s\n", done.error().text().c_str());
    return 1;
  }
  return 0;
}
