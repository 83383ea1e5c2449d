// Measures the gain of a second thread that posts through one agent. One thread, two threads with
// two peers, and two threads with one peer take turns. The floor is two threads that only copy, or
// over a network backend two that send over a socket each.
// Usage: threads_bench [BACKEND] [ROUNDS] [SOCKETS]
#include <fmt/format.h>
#include <time.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bare_socket.h"
#include "median.h"
#include "must.h"

namespace {

using namespace viaduct;
using namespace std::chrono_literals;

constexpr auto kTurn = 40ms;
constexpr std::uint64_t kMost = 1 << 20;

struct Plan {
  std::string backend = "local";
  int rounds = 15;
  std::uint32_t sockets = 1;

  bool copies() const { return backend == "local"; }
  std::vector<std::uint64_t> sizes() const {
    if (copies()) return {4 << 10, 256 << 10, kMost};
    return {64 << 10, kMost};
  }
};

Agent open(const char* name, const Plan& plan) {
  Settings settings;
  settings.name = name;
  settings.backends = {plan.backend};
  settings.sockets = plan.sockets;
  settings.copy_threads = 1;
  return must(Agent::open(settings));
}

// Two targets, and memory of each thread's own at both ends.
class Stage {
 public:
  explicit Stage(const Plan& plan)
      : here_(open("here", plan)), there_{open("one", plan), open("two", plan)} {
    for (std::size_t i = 0; i < 2; ++i) {
      targets_.push_back(must(there_[i].allocate(2 * kMost, {.label = "memory"})));
      sources_.push_back(must(here_.allocate(kMost)));
      peers_.push_back(must(here_.importCard(there_[i].exportCard())));
      must(peers_[i].ready(10s));
      must(peers_[i].waitPin("memory", 10s));
    }
  }

  // Plans a write of the thread's own blocks into its own part of the peer's memory.
  Transfer plan(std::size_t thread, std::size_t peer, std::uint64_t bytes) {
    const auto one = [&](std::uint64_t address) {
      return Selection{
          *Blocks::strided({.base = address, .stride = bytes, .bytes = bytes, .count = 1})};
    };
    return must(here_.plan(OpKind::kWrite, peers_[peer], one(sources_[thread].info().address),
                           one(targets_[peer].info().address + thread * kMost)));
  }

 private:
  static void must(Status status) {
    if (!status) die(status.error().text());
  }
  template <class T>
  static T must(Result<T> result) {
    return ::must(std::move(result));
  }

  Agent here_;
  std::array<Agent, 2> there_;
  std::vector<Pin> sources_, targets_;
  std::vector<Peer> peers_;
};

using Step = std::function<void()>;

// Steps a second by all threads together: the sum of the threads' rates, each over that thread's
// own turn. By the clock, and by the time that each had a processor: the latter is the same on a
// busy machine, but does not see a thread that waits for a lock.
struct Rate {
  double by_clock = 0, by_processor = 0;
};

double processorSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

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
      const double processor_begun = processorSeconds();
      double count = 0;
      for (; !over; count += 16)
        for (int k = 0; k < 16; ++k) steps[i]();
      done[i] = {.by_clock = count / std::chrono::duration<double>(Clock::now() - begun).count(),
                 .by_processor = count / (processorSeconds() - processor_begun)};
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

Step mover(Stage& stage, std::size_t thread, std::size_t peer, std::uint64_t bytes) {
  return [transfer = std::make_shared<Transfer>(stage.plan(thread, peer, bytes))] {
    if (const Status posted = transfer->post(); !posted) die(posted.error().text());
    while (transfer->poll() == TransferState::kRunning) {
    }
    if (transfer->state() != TransferState::kDone) die("a transfer failed");
  };
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
  return [socket = std::make_shared<bench::BareSocket>(bytes)] { socket->step(); };
}

struct Case {
  std::string name;
  std::vector<Step> steps;
  std::size_t against;  // the case with one thread
  std::vector<double> times = {}, by_clock = {}, by_processor = {};
  Rate last = {};
};

void measure(Stage& stage, const Plan& plan, std::uint64_t bytes) {
  const auto move = [&](std::size_t thread, std::size_t peer) {
    return mover(stage, thread, peer, bytes);
  };
  std::vector<Case> cases;
  cases.push_back({"one thread", {move(0, 0)}, 0});
  cases.push_back({"two threads, two peers", {move(0, 0), move(1, 1)}, 0});
  cases.push_back({"two threads, one peer", {move(0, 0), move(1, 0)}, 0});
  const auto floor = [&] { return plan.copies() ? copier(bytes) : sender(bytes); };
  const std::string alone = plan.copies() ? "memcpy alone" : "sockets alone";
  cases.push_back({"one thread, " + alone, {floor()}, 3});
  cases.push_back({"two threads, " + alone, {floor(), floor()}, 3});
  for (int round = 0; round < plan.rounds; ++round)
    for (Case& one : cases) {
      one.last = rate(one.steps);
      one.times.push_back(1e9 / one.last.by_clock);
      one.by_clock.push_back(one.last.by_clock / cases[one.against].last.by_clock);
      one.by_processor.push_back(one.last.by_processor / cases[one.against].last.by_processor);
    }
  for (const Case& one : cases)
    fmt::print(
        "{:6} {:7} {:26} {:9.0f} ns a step {:6.2f} x by the clock {:6.2f} x by processor time\n",
        plan.backend, bytes, one.name, median(one.times), median(one.by_clock),
        median(one.by_processor));
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  if (argc > 1) plan.backend = argv[1];
  if (argc > 2) plan.rounds = std::atoi(argv[2]);
  if (argc > 3) plan.sockets = static_cast<std::uint32_t>(std::atoi(argv[3]));
  if (argc > 4 || plan.rounds < 1 || plan.sockets < 1) {
    fmt::print(stderr, "usage: threads_bench [BACKEND] [ROUNDS] [SOCKETS]\n");
    return 2;
  }
  Stage stage(plan);
  for (const std::uint64_t bytes : plan.sizes()) measure(stage, plan, bytes);
  return 0;
}
