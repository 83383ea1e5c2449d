// The time of Transfer::post(), and the time until the transfer has ended. A thread posts alone, or
// beside another thread that moves large blocks through the same agent. The target is another
// process: docs/measured/waiting.md.
// Usage: post_bench [ROUNDS] [BACKEND]...
#include <fmt/format.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "forked.h"
#include "median.h"
#include "must.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using namespace std::chrono_literals;

constexpr std::uint64_t kHalf = 256ULL << 20;  // of the memory: for the thread, for the other one
constexpr auto kLong = 60s;

struct Shape {
  const char* name;
  std::uint64_t bytes;
  std::uint64_t count;
};
constexpr std::array kShapes{Shape{"1 x 4 KiB", 4 << 10, 1},
                             Shape{"32,768 x 4 KiB", 4 << 10, 32768},
                             Shape{"1 x 128 MiB", 128 << 20, 1}};

enum class Other : std::uint8_t { kNone, kWaits, kSleeps };
// The posting thread waits for its transfer, or only looks at its state now and then.
struct Situation {
  const char* name;
  bool waits;
  Other other;
};
constexpr std::array kSituations{
    Situation{"post, wait", true, Other::kNone}, Situation{"post, sleep", false, Other::kNone},
    Situation{"beside a thread that posts and waits", true, Other::kWaits},
    Situation{"beside a thread that posts and sleeps", true, Other::kSleeps}};

Settings with(const std::string& backend) {
  Settings settings;
  settings.backends = {backend};
  return settings;
}

Status serve(const std::string& backend, int in, int out) {
  VIADUCT_TRY(auto agent, Agent::open(with(backend)));
  VIADUCT_TRY(auto inbox, agent.allocate(2 * kHalf, {.label = "inbox"}));
  put(out, agent.exportCard());
  get(in);
  return Ok{};
}

class Posts {
 public:
  Posts(const std::string& backend, Child& child)
      : agent_(must(Agent::open(with(backend)))),
        memory_(must(agent_.allocate(2 * kHalf))),
        peer_(must(agent_.importCard(get(child.in())))) {
    must(peer_.ready(10s));
    inbox_ = must(peer_.waitPin("inbox", 10s)).address;
  }

  Transfer plan(const Shape& shape, std::uint64_t offset) {
    const auto pieces = [&](std::uint64_t base) {
      return Selection{must(Blocks::strided({.base = base + offset,
                                             .stride = 2 * shape.bytes,
                                             .bytes = shape.bytes,
                                             .count = shape.count}))};
    };
    return must(agent_.plan(OpKind::kWrite, peer_, pieces(memory_.info().address), pieces(inbox_)));
  }

 private:
  Agent agent_;
  Pin memory_;
  Peer peer_;
  std::uint64_t inbox_ = 0;
};

void end(Transfer& transfer, bool waits) {
  if (waits) must(transfer.wait(kLong));
  while (transfer.state() == TransferState::kRunning) std::this_thread::sleep_for(20us);
}

// Moves large blocks until it is destroyed.
class Neighbour {
 public:
  Neighbour(Posts& posts, Other other) {
    if (other == Other::kNone) return;
    thread_.emplace([&posts, other, this] {
      Transfer large = posts.plan(kShapes.back(), kHalf);
      while (!stop_) {
        must(large.post());
        end(large, other == Other::kWaits);
        ++rounds_;
      }
    });
    while (rounds_ == 0) std::this_thread::yield();
  }
  ~Neighbour() {
    stop_ = true;
    if (thread_) thread_->join();
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0};
  std::optional<std::thread> thread_;
};

double us(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

void measure(Posts& posts, const std::string& backend, const Situation& situation, int rounds) {
  for (const Shape& shape : kShapes) {
    const Neighbour neighbour(posts, situation.other);
    Transfer transfer = posts.plan(shape, 0);
    std::vector<double> posted, all;
    for (int i = -1; i < rounds; ++i) {
      std::this_thread::sleep_for(2ms);  // nobody expects this thread any more
      const auto begun = Clock::now();
      must(transfer.post());
      const auto returned = Clock::now();
      end(transfer, situation.waits);
      if (i < 0) continue;
      posted.push_back(us(returned - begun));
      all.push_back(us(Clock::now() - begun));
    }
    fmt::print("{:6} {:38} {:14} {:10.1f} {:10.1f} {:10.1f}\n", backend, situation.name, shape.name,
               median(posted), *std::ranges::max_element(posted), median(all));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 31;
  std::vector<std::string> backends(argv + std::min(argc, 2), argv + argc);
  if (backends.empty()) backends = {"tcp", "local"};
  fmt::print("{:6} {:38} {:14} {:>10} {:>10} {:>10}\n", "", "", "us", "post", "longest", "all");
  for (const std::string& backend : backends) {
    Child child([&](int in, int out) { return serve(backend, in, out); });
    Posts posts(backend, child);
    for (const Situation& situation : kSituations) measure(posts, backend, situation, rounds);
  }
}
