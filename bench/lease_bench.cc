// The cost of a lease at each end, beside a note, and of a post of 4 KiB with and without one, in
// turns. Both agents are in this process. Prints medians over the rounds, with the quartiles.
//   lease_bench [ROUNDS]
#include <fmt/format.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "must.h"

namespace {

using namespace std::chrono_literals;
using namespace viaduct;

constexpr std::uint64_t kBlock = 4096, kBlocks = 1U << 16U;
constexpr std::size_t kMostLeases = 256;  // of a round

struct Times {
  const char* what;
  std::vector<double> ns = {};
  double at(double quantile) {
    std::sort(ns.begin(), ns.end());
    return ns[static_cast<std::size_t>(quantile * static_cast<double>(ns.size() - 1))];
  }
  void print() {
    fmt::print("| {} | {:.0f} ({:.0f}–{:.0f}) |\n", what, at(0.5), at(0.25), at(0.75));
  }
};

template <class F>
void time(Times& into, std::size_t calls, F work) {
  const auto begun = Clock::now();
  for (std::size_t i = 0; i < calls; ++i) work(i);
  const auto took = std::chrono::duration<double, std::nano>(Clock::now() - begun);
  into.ns.push_back(took.count() / static_cast<double>(calls));
}

class Bench {
 public:
  explicit Bench(const char* backend)
      : owner_(must(Agent::open({.name = "owner", .backends = {backend}}))),
        user_(must(Agent::open({.name = "user", .backends = {backend}}))),
        lent_(must(owner_.allocate(kBlock * kBlocks, {.label = "lent"}))),
        here_(must(user_.allocate(kBlock * kBlocks))),
        at_user_(must(user_.importCard(owner_.exportCard()))),
        at_owner_([this] {
          must(at_user_.ready(10s));
          must(at_user_.waitPin("lent", 10s));
          return must(owner_.peer("user"));
        }()) {
    must(at_owner_.ready(10s));
  }

  // Leases of `count` blocks, of which no two touch. Each lease of a round has other blocks.
  void leases(int rounds, std::uint32_t count) {
    std::vector<Selection> selections;
    const std::size_t all = std::min<std::size_t>(kMostLeases, kBlocks / 4 / count);
    for (std::uint32_t lease = 0; lease < all; ++lease) {
      Indices indices;
      for (std::uint32_t i = 0; i < count; ++i)
        indices.push_back(2 * (i * static_cast<std::uint32_t>(all) + lease));
      selections.push_back({blocksOf(lent_), std::move(indices)});
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
      time(grant, all,
           [&](std::size_t i) { lent.push_back(must(owner_.lease(at_owner_, selections[i]))); });
      time(ticket, all, [&](std::size_t i) { tickets.push_back(lent[i].ticket()); });
      time(borrow, all,
           [&](std::size_t i) { borrowed.push_back(must(user_.borrow(at_user_, tickets[i]))); });
      time(give_back, all, [&](std::size_t i) { borrowed[i].giveBack(); });
      time(returned, all, [&](std::size_t i) { must(lent[i].wait(10s)); });
      time(note, all, [&](std::size_t) { must(at_user_.note("12345678")); });
      time(note_taken, all, [&](std::size_t) { must(owner_.waitNote(10s)); });
    }
    fmt::print("\n| a lease of {} separate blocks | ns |\n|---|---|\n", count);
    for (Times* const times : {&grant, &ticket, &returned, &borrow, &give_back, &note, &note_taken})
      times->print();
  }

  // Leases for writing a block, beside one for reading `count` others: the first one, and the next.
  void writers(int rounds, std::uint64_t count) {
    const std::uint64_t base = lent_.info().address;
    constexpr std::uint64_t kPart = 64;
    const auto part = [&](std::uint64_t from, std::uint64_t parts) {
      return Selection{
          must(Blocks::strided(
              {.base = base + from * kPart, .stride = 4 * kPart, .bytes = kPart, .count = parts})),
          {}};
    };
    Times first{"the first lease for writing"}, next{"the next one"};
    for (int round = 0; round < rounds; ++round) {
      const Lease read = must(owner_.lease(at_owner_, part(0, count)));
      std::vector<Lease> written;
      written.reserve(2);
      for (Times* const times : {&first, &next})
        time(*times, 1, [&](std::size_t) {
          written.push_back(must(owner_.lease(at_owner_, part(1 + written.size(), 1),
                                              {.access = MemoryAccess::kReadWrite})));
        });
    }
    fmt::print("\n| beside a lease for reading {} blocks | ns |\n|---|---|\n", count);
    first.print();
    next.print();
  }

  // Posts of one block, in turns.
  void posts(int rounds, std::size_t calls) {
    const Selection one{blocksOf(here_), {7}};
    Lease lease = must(owner_.lease(at_owner_, {blocksOf(lent_), {7}}, {.duration = 24h}));
    const BorrowedLease borrowed = must(user_.borrow(at_user_, lease.ticket()));
    Transfer with = must(user_.plan(OpKind::kRead, borrowed, one));
    Transfer without = must(user_.plan(OpKind::kRead, at_user_, one, {blocksOf(lent_), {7}}));
    Times plain{"without a lease"}, leased{"under a lease"};
    std::vector<double> ratios;
    const auto post = [](Transfer& transfer) {
      must(transfer.post());
      while (transfer.poll() == TransferState::kRunning) continue;
    };
    for (int round = 0; round < rounds; ++round) {
      // Each is first in every second round.
      for (int turn = 0; turn < 2; ++turn) {
        const bool now_leased = (round + turn) % 2 == 0;
        time(now_leased ? leased : plain, calls,
             [&](std::size_t) { post(now_leased ? with : without); });
      }
      ratios.push_back(leased.ns.back() / plain.ns.back());
    }
    std::sort(ratios.begin(), ratios.end());
    fmt::print("\n| a post of 4 KiB | ns |\n|---|---|\n");
    plain.print();
    leased.print();
    fmt::print("| median of the rounds' ratios | {:.3f} |\n", ratios[ratios.size() / 2]);
  }

 private:
  static Blocks blocksOf(const Pin& pin) {
    return must(
        Blocks::strided({.base = pin.info().address, .bytes = kBlock, .count = kBlocks / 2}));
  }

  Agent owner_, user_;
  Pin lent_, here_;
  Peer at_user_, at_owner_;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 201;
  {
    Bench bench("local");
    for (const std::uint32_t count : {1U, 64U, 1024U}) bench.leases(rounds, count);
    for (const std::uint64_t count : {1U << 10U, 1U << 18U}) bench.writers(rounds, count);
  }
  for (const auto& [backend, calls] : {std::pair("local", 2000U), std::pair("tcp", 50U)}) {
    fmt::print("\n{}\n", backend);
    Bench(backend).posts(rounds, calls);
  }
  return 0;
}
