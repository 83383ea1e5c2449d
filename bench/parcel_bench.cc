// The cost of a parcel of one part of 4 KiB, from publish() until it is fetched and both ends know,
// beside reads of the same block, in turns. By hand, a program asks for the block with a note, gets
// a lease of it, reads, gives it back and says so with a note. Both agents are in this process, and
// one thread polls them. Prints medians over the rounds, with the quartiles.
//   parcel_bench [ROUNDS [CALLS [BACKEND...]]]
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::uint64_t kBlock = 4096;

// Microseconds of a call, of which a round makes many.
struct Times {
  const char* what;
  Samples us = {};
  double sum = 0;

  template <class Call>
  auto time(const Call& call) {
    const auto start = Clock::now();
    auto out = call();
    sum += 1e6 * secondsSince(start);
    return out;
  }
  void end(std::size_t calls) { us.add(std::exchange(sum, 0) / static_cast<double>(calls)); }
};

class Bench {
 public:
  explicit Bench(const char* backend)
      : pair_({.backends = {backend}}, kBlock), at_owner_(must(pair_.target.agent.peer("source"))) {
    must(at_owner_.ready(kLong));
  }

  void run(int rounds, std::size_t calls) {
    Transfer repeated = pair_.source.plan(OpKind::kRead, run_);
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < calls; ++i) {
        again_.time([&] { return read(repeated); });
        planned_.time([&] {
          Transfer transfer = pair_.source.plan(OpKind::kRead, run_);
          return read(transfer);
        });
        by_hand_.time([&] { return readByHand(); });
        whole_.time([&] { return fetch(); });
      }
      for (Times* const times : all_) times->end(calls);
    }
    Table table({words("", 44), spread("us", 2, 0.25)});
    for (const Times* const times : all_) table.row(times->what, times->us);
    fmt::print("parcel over planned read, and over the read by hand: {:.2f} {:.2f}\n",
               (whole_.us / planned_.us).median(), (whole_.us / by_hand_.us).median());
  }

 private:
  bool read(Transfer& transfer) {
    must(transfer.post());
    while (transfer.poll() == TransferState::kRunning) pair_.target.agent.poll();
    return transfer.state() == TransferState::kDone;
  }
  template <class Over>
  bool poll(const Over& over) {
    while (!over()) {
      pair_.source.agent.poll();
      pair_.target.agent.poll();
    }
    return true;
  }
  std::vector<std::byte> noteAt(Agent& agent) {
    std::optional<Note> note;
    poll([&] { return (note = agent.takeNote()).has_value(); });
    return std::move(note->bytes);
  }
  bool readByHand() {
    Target& owner = pair_.target;
    Source& user = pair_.source;
    must(user.peer.note("kv"));
    noteAt(owner.agent);
    const Selection there = blocks({.base = owner.here(), .bytes = kBlock, .count = 1});
    const Lease lent = must(owner.agent.lease(at_owner_, there));
    must(at_owner_.note(lent.ticket()));
    {
      const BorrowedLease lease = must(user.agent.borrow(user.peer, noteAt(user.agent)));
      const Selection here = blocks({.base = user.here(), .bytes = kBlock, .count = 1});
      Transfer transfer = must(user.agent.plan(OpKind::kRead, lease, here));
      read(transfer);
    }
    must(user.peer.note("whole"));
    noteAt(owner.agent);
    return poll([&] { return lent.state() == LeaseState::kReturned; });
  }
  // Times publish(), fetch(), the fetch until its end, and the wait until the publisher knows of
  // it.
  bool fetch() {
    const Selection there = blocks({.base = pair_.target.here(), .bytes = kBlock, .count = 1});
    const Selection here = blocks({.base = pair_.source.here(), .bytes = kBlock, .count = 1});
    auto parcel = publish_.time([&] {
      return must(pair_.target.agent.publish(
          "kv", {.version = ++version_, .ready = {{{}, there}}, .takers = 1}));
    });
    auto fetch = fetch_.time([&] {
      return must(pair_.source.agent.fetch(pair_.source.peer, "kv", {.into = {{{}, here}}}));
    });
    fetched_.time([&] { return poll([&] { return fetch.end().has_value(); }); });
    if (fetch.end()->outcome != ParcelOutcome::kWhole) die(fetch.end()->why->text());
    return ended_.time([&] { return poll([&] { return parcel.taken() == 1; }); });
  }

  Pair pair_;
  const Peer at_owner_;
  const Run run_{.base = 0, .bytes = kBlock, .count = 1};
  std::uint64_t version_ = 0;
  Times again_{"a read, posted again"}, planned_{"a read, planned and posted"};
  Times by_hand_{"a read under a lease, by hand with three notes"};
  Times whole_{"a parcel, until both ends know"};
  Times publish_{"  publish()"}, fetch_{"  fetch()"}, fetched_{"  until it is fetched"};
  Times ended_{"  until the publisher knows"};
  const std::vector<Times*> all_{&again_,   &planned_, &by_hand_, &whole_,
                                 &publish_, &fetch_,   &fetched_, &ended_};
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "parcel_bench [ROUNDS [CALLS [BACKEND...]]]");
  for (const std::string& backend : given.from(2, {"local", "tcp"})) {
    fmt::print("\n{}\n", backend);
    Bench(backend.c_str()).run(given.number(0, 51), given.number<std::size_t>(1, 500));
  }
}
