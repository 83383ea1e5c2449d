// What a second thread adds: posts of one agent by one thread, by two threads to two peers, and by
// two threads to one peer, in turns inside one process. The floor is two threads that only copy.
// Usage: threads_bench [BACKEND] [ROUNDS]
#include <fmt/format.h>
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

#include "must.h"

namespace {

using namespace viaduct;
using namespace std::chrono_literals;

constexpr auto kTurn = 40ms;
constexpr std::uint64_t kMost = 256 << 10;

Agent open(const char* name, const std::string& backend) {
  Settings settings;
  settings.name = name;
  settings.backends = {backend};
  settings.copy_threads = 1;
  return must(Agent::open(settings));
}

// Two targets, and memory of each thread's own at both ends.
class Stage {
 public:
  explicit Stage(const std::string& backend)
      : here_(open("here", backend)), there_{open("one", backend), open("two", backend)} {
    for (std::size_t i = 0; i < 2; ++i) {
      targets_.push_back(must(there_[i].allocate(2 * kMost, {.label = "memory"})));
      sources_.push_back(must(here_.allocate(kMost)));
      peers_.push_back(must(here_.importCard(there_[i].exportCard())));
      must(peers_[i].ready(10s));
      must(peers_[i].waitPin("memory", 10s));
    }
  }

  // Of that thread: its own blocks of that peer's memory.
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

// Steps a second by all of them together, each on a thread of its own.
double rate(const std::vector<Step>& steps) {
  std::atomic<std::size_t> ready{0};
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> done{0};
  std::vector<std::jthread> threads;
  for (const Step& step : steps)
    threads.emplace_back([&] {
      ++ready;
      while (ready < steps.size()) std::this_thread::yield();
      std::uint64_t count = 0;
      for (; !over; count += 16)
        for (int i = 0; i < 16; ++i) step();
      done += count;
    });
  while (ready < steps.size()) std::this_thread::yield();
  const auto begun = Clock::now();
  std::this_thread::sleep_for(kTurn);
  over = true;
  threads.clear();
  return static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - begun).count();
}

Step mover(Stage& stage, std::size_t thread, std::size_t peer, std::uint64_t bytes) {
  return [transfer = std::make_shared<Transfer>(stage.plan(thread, peer, bytes))] {
    if (const Status posted = transfer->post(); !posted) die(posted.error().text());
    while (transfer->poll() == TransferState::kRunning) {
    }
    if (transfer->state() != TransferState::kDone) die("a transfer failed");
  };
}

Step copier(std::uint64_t bytes) {
  auto memory = std::make_shared<std::vector<char>>(2 * bytes, 'x');
  return [memory, bytes] {
    std::memcpy(memory->data() + bytes, memory->data(), bytes);
    asm volatile("" : : "r"(memory->data()) : "memory");
  };
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Case {
  std::string name;
  std::vector<Step> steps;
  std::size_t against;  // the case with one thread
  std::vector<double> rates = {}, ratios = {};
};

void measure(Stage& stage, const std::string& backend, std::uint64_t bytes, int rounds) {
  const auto move = [&](std::size_t thread, std::size_t peer) {
    return mover(stage, thread, peer, bytes);
  };
  std::vector<Case> cases;
  cases.push_back({"one thread", {move(0, 0)}, 0});
  cases.push_back({"two threads, two peers", {move(0, 0), move(1, 1)}, 0});
  cases.push_back({"two threads, one peer", {move(0, 0), move(1, 0)}, 0});
  cases.push_back({"one thread, memcpy alone", {copier(bytes)}, 3});
  cases.push_back({"two threads, memcpy alone", {copier(bytes), copier(bytes)}, 3});
  for (int round = 0; round < rounds; ++round) {
    for (Case& one : cases) one.rates.push_back(rate(one.steps));
    for (Case& one : cases)
      one.ratios.push_back(one.rates.back() / cases[one.against].rates.back());
  }
  for (const Case& one : cases)
    fmt::print("{:6} {:7} {:26} {:9.0f} ns a step {:6.2f} x\n", backend, bytes, one.name,
               1e9 / median(one.rates), median(one.ratios));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string backend = argc > 1 ? argv[1] : "local";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  if (argc > 3 || rounds < 1) {
    fmt::print(stderr, "usage: threads_bench [BACKEND] [ROUNDS]\n");
    return 2;
  }
  Stage stage(backend);
  for (const std::uint64_t bytes : {std::uint64_t{4096}, kMost})
    measure(stage, backend, bytes, rounds);
  return 0;
}
