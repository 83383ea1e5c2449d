// The cost of a lease at each end, beside a note, and of a post of 4 KiB with and without one, in
// turns. Both agents are in this process. Prints medians over the rounds, with the quartiles.
//   lease_bench [ROUNDS]
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint64_t kBlock = 4096, kBlocks = 1U << 16U;
constexpr std::size_t kMostLeases = 256;  // of a round

// The times of one call, in ns.
struct Times {
  const char* what;
  Samples ns = {};

  template <class Call>
  void take(std::size_t calls, const Call& call) {
    std::size_t i = 0;
    ns.add(1e9 * secondsPerCall(calls, [&] { call(i++); }));
  }
};

void print(std::string_view title, const std::vector<const Times*>& all) {
  fmt::print("\n");
  Table table({words(title, 48), spread("ns", 0, 0.25)});
  for (const Times* const times : all) table.row(times->what, times->ns);
}

class Bench {
 public:
  explicit Bench(const char* backend)
      : pair_({.backends = {backend}}, kBlock * kBlocks), at_owner_(must(owner_.peer("source"))) {
    must(at_owner_.ready(kLong));
  }

  // Leases of `count` blocks, of which no two touch. Each lease of a round has other blocks.
  void leases(int rounds, std::uint32_t count) {
    std::vector<Selection> selections;
    const std::size_t all = std::min<std::size_t>(kMostLeases, kBlocks / 4 / count);
    for (std::uint32_t lease = 0; lease < all; ++lease) {
      Indices indices;
      for (std::uint32_t i = 0; i < count; ++i)
        indices.push_back(2 * (i * static_cast<std::uint32_t>(all) + lease));
      selections.push_back(of(pair_.target, std::move(indices)));
    }
    Times grant{"owner: `lease()`"}, ticket{"owner: `ticket()`"},
        returned{"owner: hears the return"};
    Times borrow{"borrower: `borrow()`"},
        give_back{"borrower: `giveBack()`, which sends a message"};
    Times note{"a note, sent"}, note_taken{"a note, taken"};
    for (int round = 0; round < rounds; ++round) {
      std::vector<Lease> lent;
      std::vector<BorrowedLease> borrowed;
      std::vector<std::vector<std::byte>> tickets;
      lent.reserve(all);
      borrowed.reserve(all);
      tickets.reserve(all);
      grant.take(all, [&](std::size_t i) {
        lent.push_back(must(owner_.lease(at_owner_, selections[i])));
      });
      ticket.take(all, [&](std::size_t i) { tickets.push_back(lent[i].ticket()); });
      borrow.take(all, [&](std::size_t i) {
        borrowed.push_back(must(user_.borrow(at_user_, tickets[i])));
      });
      give_back.take(all, [&](std::size_t i) { borrowed[i].giveBack(); });
      returned.take(all, [&](std::size_t i) { must(lent[i].wait(kLong)); });
      note.take(all, [&](std::size_t) { must(at_user_.note("12345678")); });
      note_taken.take(all, [&](std::size_t) { must(owner_.waitNote(kLong)); });
    }
    print(fmt::format("a lease of {} separate blocks", count),
          {&grant, &ticket, &returned, &borrow, &give_back, &note, &note_taken});
  }

  // Times a first and a second lease for writing one block, while a lease for reading `count` other
  // blocks exists.
  void writers(int rounds, std::uint64_t count) {
    constexpr std::uint64_t kPart = 64;
    const auto part = [&](std::uint64_t from, std::uint64_t parts) {
      return blocks({.base = pair_.target.here() + from * kPart,
                     .stride = 4 * kPart,
                     .bytes = kPart,
                     .count = parts});
    };
    Times first{"the first lease for writing"}, next{"the next one"};
    for (int round = 0; round < rounds; ++round) {
      const Lease read = must(owner_.lease(at_owner_, part(0, count)));
      std::vector<Lease> written;
      written.reserve(2);
      for (Times* const times : {&first, &next})
        times->take(1, [&](std::size_t) {
          written.push_back(must(owner_.lease(at_owner_, part(1 + written.size(), 1),
                                              {.access = MemoryAccess::kReadWrite})));
        });
    }
    print(fmt::format("beside a lease for reading {} blocks", count), {&first, &next});
  }

  // Posts of one block, in turns.
  void posts(int rounds, std::size_t calls) {
    const Selection here = of(pair_.source, {7}), there = of(pair_.target, {7});
    Lease lease = must(owner_.lease(at_owner_, there, {.duration = std::chrono::hours(24)}));
    const BorrowedLease borrowed = must(user_.borrow(at_user_, lease.ticket()));
    Transfer with = must(user_.plan(OpKind::kRead, borrowed, here));
    Transfer without = must(user_.plan(OpKind::kRead, at_user_, here, there));
    Times plain{"without a lease"}, leased{"under a lease"};
    for (int round = 0; round < rounds; ++round)
      // Each of the two posts comes first in every second round.
      for (int turn = 0; turn < 2; ++turn) {
        const bool now_leased = (round + turn) % 2 == 0;
        (now_leased ? leased : plain).take(calls, [&](std::size_t) {
          postAndPoll(now_leased ? with : without);
        });
      }
    print("a post of 4 KiB", {&plain, &leased});
    fmt::print("median of the rounds' ratios: {:.3f}\n", (leased.ns / plain.ns).median());
  }

 private:
  static Selection of(const Target& target, Indices indices) {
    return blocks({.base = target.here(), .bytes = kBlock, .count = kBlocks / 2},
                  std::move(indices));
  }

  Pair pair_;
  Agent& owner_ = pair_.target.agent;
  Agent& user_ = pair_.source.agent;
  const Peer& at_user_ = pair_.source.peer;
  Peer at_owner_;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "lease_bench [ROUNDS]");
  const int rounds = given.number(0, 201);
  {
    Bench bench("local");
    for (const std::uint32_t count : {1U, 64U, 1024U}) bench.leases(rounds, count);
    for (const std::uint64_t count : {1U << 10U, 1U << 18U}) bench.writers(rounds, count);
  }
  for (const auto& [backend, calls] : {std::pair("local", 2000U), std::pair("tcp", 50U)}) {
    fmt::print("\n{}\n", backend);
    Bench(backend).posts(rounds, calls);
  }
}
