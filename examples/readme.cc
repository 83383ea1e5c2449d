// The program of README.md, run against a process that plays the other end.
// README begins
#include <viaduct/viaduct.h>

#include <cstdio>

using namespace std::chrono_literals;

// Writes 1,024 blocks of 4 KiB into the memory that another process has pinned as "inbox".
viaduct::Status push(std::span<const std::byte> card) {  // from the other's exportCard()
  VIADUCT_TRY(auto agent, viaduct::Agent::open());       // one per process
  VIADUCT_TRY(auto memory, agent.allocate(4 << 20));     // memory that peers on this host can map
  VIADUCT_TRY(auto peer, agent.importCard(card));
  VIADUCT_CHECK(peer.ready(5s));
  VIADUCT_TRY(auto inbox, peer.waitPin("inbox", 5s));

  VIADUCT_TRY(auto from, viaduct::Blocks::strided(
                             {.base = memory.info().address, .bytes = 4096, .count = 1024}));
  VIADUCT_TRY(auto into,
              viaduct::Blocks::strided({.base = inbox.address, .bytes = 4096, .count = 1024}));
  VIADUCT_TRY(auto transfer, agent.plan(viaduct::OpKind::kWrite, peer, {from}, {into}));
  VIADUCT_CHECK(transfer.post());    // as often as you like: the plan is kept
  VIADUCT_CHECK(transfer.wait(2s));  // or poll(), a callback, an event fd
  std::printf("%s\n", transfer.path().text().c_str());
  return viaduct::Ok{};
}
// README ends
#include <stdlib.h>

#include <string>

namespace {

viaduct::Status openInboxAndPush() {
  VIADUCT_TRY(auto other, viaduct::Agent::open({.name = "other"}));
  VIADUCT_TRY(auto inbox, other.allocate(4 << 20, {.label = "inbox"}));
  return push(other.exportCard());
}

}  // namespace

int main() {
  // Removes the variables of the test's user, which must not count here.
  for (const viaduct::SettingRow& row : viaduct::settingRows())
    ::unsetenv(std::string(row.variable).c_str());
  const auto done = openInboxAndPush();
  if (!done) std::fprintf(stderr, "%s\n", done.error().text().c_str());
  return done ? 0 : 1;
}
