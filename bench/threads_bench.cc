// Measures the gain of a second thread that posts through one agent. One thread, two threads with
// two peers, and two threads with one peer take turns. The floor is two threads that only copy, or
// over a network backend two that send over a socket each.
//   threads_bench [BACKEND [ROUNDS [SOCKETS]]]
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

#include "bare_socket.h"
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr auto kTurn = std::chrono::milliseconds(40);
constexpr std::uint64_t kMost = 1 << 20;

Settings settingsOf(const char* name, const Arguments& given) {
  Settings settings;
  settings.name = name;
  settings.backends = {given.text(0, "local")};
  settings.sockets = given.number(2, 1U);
  settings.copy_threads = 1;
  return settings;
}

// Two targets, and memory of each thread's own at both ends.
class Stage {
 public:
  explicit Stage(const Arguments& given)
      : here_(must(Agent::open(settingsOf("here", given)))),
        targets_{Target(settingsOf("one", given), 2 * kMost),
                 Target(settingsOf("two", given), 2 * kMost)} {
    for (const Target& target : targets_) {
      sources_.push_back(must(here_.allocate(kMost)));
      peers_.push_back(must(here_.importCard(target.agent.exportCard())));
      must(peers_.back().ready(kLong));
      must(peers_.back().waitPin(kMemory, kLong));
    }
  }

  // Plans a write of the thread's own blocks into its own part of the peer's memory.
  Transfer plan(std::size_t thread, std::size_t peer, std::uint64_t bytes) {
    const auto one = [&](std::uint64_t address) {
      return blocks({.base = address, .bytes = bytes, .count = 1});
    };
    return must(here_.plan(OpKind::kWrite, peers_[peer], one(sources_[thread].info().address),
                           one(targets_[peer].here() + thread * kMost)));
  }

 private:
  Agent here_;
  std::array<Target, 2> targets_;
  std::vector<Pin> sources_;
  std::vector<Peer> peers_;
};

using Step = std::function<void()>;

// Steps a second of all threads together: the sum of each thread's rate over its own turn.
// `by_clock` divides by elapsed time, and `by_processor` by the time that the thread had a
// processor. The latter is the same on a busy machine, but does not count waits for a lock.
struct Rate {
  double by_clock = 0, by_processor = 0;
};

Rate rate(const std::vector<Step>& steps) {
  std::atomic<std::size_t> ready{0};
  std::atomic<bool> over{false};
  std::vector<Rate> done(steps.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < steps.size(); ++i)
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < steps.size()) std::this_thread::yield();
      const auto begun = Clock::now();
      const double processor_begun = processorSeconds(CLOCK_THREAD_CPUTIME_ID);
      double count = 0;
      for (; !over; count += 16)
        for (int k = 0; k < 16; ++k) steps[i]();
      done[i] = {
          .by_clock = count / secondsSince(begun),
          .by_processor = count / (processorSeconds(CLOCK_THREAD_CPUTIME_ID) - processor_begun)};
    });
  while (ready < steps.size()) std::this_thread::yield();
  std::this_thread::sleep_for(kTurn);
  over = true;
  threads.clear();
  Rate sum;
  for (const Rate& one : done) {
    sum.by_clock += one.by_clock;
    sum.by_processor += one.by_processor;
  }
  return sum;
}

Step mover(Transfer transfer) {
  return [transfer = std::make_shared<Transfer>(std::move(transfer))] { postAndPoll(*transfer); };
}

// Memory on pages of its own: neighbours would share a cache line.
Step copier(std::uint64_t bytes) {
  constexpr std::uint64_t kPage = 4096;
  std::shared_ptr<char> memory(static_cast<char*>(std::aligned_alloc(kPage, 2 * bytes)), std::free);
  std::memset(memory.get(), 'x', 2 * bytes);
  return [memory, bytes] {
    std::memcpy(memory.get() + bytes, memory.get(), bytes);
    asm volatile("" : : "r"(memory.get()) : "memory");
  };
}

Step sender(std::uint64_t bytes) {
  return [socket = std::make_shared<BareSocket>(bytes)] { socket->step(); };
}

struct Case {
  std::string name;
  std::vector<Step> steps;
  std::size_t against;  // index of the case with one thread
  Samples by_clock = {}, by_processor = {};
};

void measure(Table& table, Stage& stage, const Arguments& given, std::uint64_t bytes) {
  const std::string backend = given.text(0, "local");
  const bool copies = backend == "local";
  const auto move = [&](std::size_t thread, std::size_t peer) {
    return mover(stage.plan(thread, peer, bytes));
  };
  const auto floor = [&] { return copies ? copier(bytes) : sender(bytes); };
  const std::string alone = copies ? "memcpy alone" : "sockets alone";
  std::vector<Case> cases{{"one thread", {move(0, 0)}, 0},
                          {"two threads, two peers", {move(0, 0), move(1, 1)}, 0},
                          {"two threads, one peer", {move(0, 0), move(1, 0)}, 0},
                          {"one thread, " + alone, {floor()}, 3},
                          {"two threads, " + alone, {floor(), floor()}, 3}};
  inTurns({given.number(1, 15)}, cases, [](Case& one, int) {
    const Rate taken = rate(one.steps);
    one.by_clock.add(taken.by_clock);
    one.by_processor.add(taken.by_processor);
  });
  for (const Case& one : cases) {
    const Case& single = cases[one.against];
    table.row(backend, bytes, one.name, 1e9 / one.by_clock, one.by_clock / single.by_clock,
              one.by_processor / single.by_processor);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "threads_bench [BACKEND [ROUNDS [SOCKETS]]]");
  Stage stage(given);
  Table table({words("", 6), figure("bytes", 0), words("", 28), figure("ns a step", 0),
               figure("x by the clock", 2), figure("x by processor time", 2)});
  const std::vector<std::uint64_t> sizes =
      given.text(0, "local") == "local" ? std::vector<std::uint64_t>{4 << 10, 256 << 10, kMost}
                                        : std::vector<std::uint64_t>{64 << 10, kMost};
  for (const std::uint64_t bytes : sizes) measure(table, stage, given, bytes);
}
