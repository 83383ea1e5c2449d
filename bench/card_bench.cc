// The cost of cards with a grant: the time until the first bytes have moved, and the time until a
// revoked holder is refused. Also transfers on one host, which go over tcp because of the grant.
// All agents are in this process.
//   card_bench [ROUNDS]
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint64_t kLarge = std::uint64_t{64} << 20U;

Settings named(std::string name, std::vector<std::string> backends) {
  return {.name = std::move(name), .backends = std::move(backends)};
}

// Agents come and go, so each has a name of its own.
std::string freshName() {
  static int last = 0;
  return fmt::format("holder-{}", ++last);
}

Card narrowed(const Agent& owner) {
  return must(must(owner.card(Grant{})).narrow({.access = CardAccess::kWrite}));
}

// Times the way from making the card to the end of a write of 8 bytes over tcp. The holder's agent
// is open before.
double firstTransfer(Agent& owner, bool granted) {
  Agent holder = must(Agent::open(named(freshName(), {"tcp"})));
  const Pin here = must(holder.allocate(4096));
  const auto start = Clock::now();
  const auto card = granted ? narrowed(owner).encode() : owner.exportCard();
  const Peer peer = must(holder.importCard(card));
  must(peer.ready(kLong));
  const PinInfo there = must(peer.waitPin(kMemory, kLong));
  const auto eight = [](std::uint64_t base) {
    return blocks({.base = base, .stride = 8, .bytes = 8, .count = 1});
  };
  Transfer write =
      must(holder.plan(OpKind::kWrite, peer, eight(here.info().address), eight(there.address)));
  postAndWait(write);
  return secondsSince(start);
}

// Times the way from revokeCard() until the holder's session is over and no new one comes about.
double revocation(Agent& owner) {
  Agent holder = must(Agent::open(named(freshName(), {"tcp"})));
  const Card card = narrowed(owner);
  const Peer peer = must(holder.connect(card));
  must(peer.ready(kLong));
  const auto start = Clock::now();
  must(owner.revokeCard(card));
  must(peer.over(1, kLong));
  if (peer.ready(kLong)) die("a revoked card was let in");
  return secondsSince(start);
}

void starts(Agent& owner, int rounds) {
  const auto us = [](double seconds) { return 1e6 * seconds; };
  const auto times = inTurns({rounds, 2}, {[&](int) { return us(firstTransfer(owner, false)); },
                                           [&](int) { return us(firstTransfer(owner, true)); },
                                           [&](int) { return us(revocation(owner)); }});
  Table table({words("card", 44), spread("us", 1, 0.25)});
  table.row("plain: first transfer", times[0]);
  table.row("exported, narrowed and sent: first transfer", times[1]);
  table.row("revoked until the holder is refused", times[2]);
  fmt::print("slowest revocation: {:.1f} ms\n", times[2].most() / 1e3);
}

void transfers(Agent& owner, int rounds) {
  const std::vector<std::string> both{"local", "tcp"};
  const auto granted = must(owner.exportCard(Grant{}));
  Source plain(named(freshName(), both), kLarge, owner.exportCard());
  Source tcp(named(freshName(), {"tcp"}), kLarge, owner.exportCard());
  Source limited(named(freshName(), both), kLarge, granted);
  for (const std::uint64_t bytes : {std::uint64_t{4096}, kLarge}) {
    const auto timed = [bytes](Source& source) {
      return [&source, write = std::make_shared<Transfer>(source.plan(
                           OpKind::kWrite, {.stride = bytes, .bytes = bytes, .count = 1}))](int) {
        return 1e6 * secondsOf([&] { postAndWait(*write); });
      };
    };
    const auto times = inTurns({rounds, 2}, {timed(plain), timed(tcp), timed(limited)});
    fmt::print("\n{} bytes on one host\n", bytes);
    Table table({words("card", 44), spread("us", 1, 0.25)});
    table.row("plain, over local", times[0]);
    table.row("plain, over tcp", times[1]);
    table.row("with a grant, over tcp", times[2]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "card_bench [ROUNDS]");
  const int rounds = given.number(0, 51);
  Target owner(named("owner", {"local", "tcp"}), kLarge);
  starts(owner.agent, rounds);
  transfers(owner.agent, rounds);
}
