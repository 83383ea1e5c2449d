// The time of an urgent transfer of 1 MiB over tcp: alone, and beside background transfers that
// saturate the path. The target is another process: docs/measured/priority.md. The floor is two
// plain sockets, of which one is saturated. With a NETNS, the target runs in that network
// namespace, and there is no floor. Usage: priority_bench [ROUNDS] [NETNS]
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bare_socket.h"
#include "forked.h"
#include "median.h"
#include "must.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using namespace std::chrono_literals;

constexpr std::uint64_t kUrgentBytes = 1 << 20, kOtherBytes = 8 << 20;
constexpr std::uint64_t kOthers = 4;  // background transfers in flight
constexpr auto kLong = 60s;

Settings overTcp() {
  Settings settings;
  settings.backends = {"tcp"};
  return settings;
}

Status serve(const std::string& netns, int in, int out) {
  if (!netns.empty()) {
    const Fd space(::open(("/run/netns/" + netns).c_str(), O_RDONLY | O_CLOEXEC));
    if (!space || ::setns(space.get(), CLONE_NEWNET) != 0)
      return systemError(Code::kInvalid, "enter the network namespace " + netns, errno);
  }
  Settings settings = overTcp();
  if (!netns.empty()) settings.listen = {"0.0.0.0:0"};
  VIADUCT_TRY(auto agent, Agent::open(settings));
  VIADUCT_TRY(auto inbox, agent.allocate(kUrgentBytes + kOthers * kOtherBytes, {.label = "inbox"}));
  put(out, agent.exportCard());
  get(in);
  return Ok{};
}

class Posts {
 public:
  explicit Posts(Child& child)
      : agent_(must(Agent::open(overTcp()))),
        memory_(must(agent_.allocate(kUrgentBytes + kOthers * kOtherBytes))),
        peer_(must(agent_.importCard(get(child.in())))) {
    must(peer_.ready(10s));
    inbox_ = must(peer_.waitPin("inbox", 10s)).address;
  }
  Transfer plan(OpKind kind, std::uint64_t offset, std::uint64_t bytes, Priority priority) {
    const auto at = [&](std::uint64_t base) {
      return Selection{must(Blocks::strided({.base = base + offset, .bytes = bytes, .count = 1}))};
    };
    return must(
        agent_.plan(kind, peer_, at(memory_.info().address), at(inbox_), {.priority = priority}));
  }

 private:
  Agent agent_;
  Pin memory_;
  Peer peer_;
  std::uint64_t inbox_ = 0;
};

double us(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// Keeps transfers of one class in flight until it is destroyed, on one thread.
class Others {
 public:
  Others(Posts& posts, OpKind kind, Priority priority) {
    thread_ = std::thread([&posts, kind, priority, this] {
      std::vector<Transfer> all;
      for (std::uint64_t i = 0; i < kOthers; ++i) {
        all.push_back(posts.plan(kind, kUrgentBytes + i * kOtherBytes, kOtherBytes, priority));
        must(all.back().post());
      }
      auto last = Clock::now();
      for (std::size_t next = 0; !stop_; next = (next + 1) % all.size()) {
        must(all[next].wait(kLong));
        must(all[next].post());
        const auto now = Clock::now();
        if (rounds_ > kOthers) longest_ = std::max(longest_, now - last);
        last = now;
        ++rounds_;
      }
      for (Transfer& one : all) must(one.wait(kLong));
    });
    while (rounds_ < 2 * kOthers) std::this_thread::yield();
    begun_ = Clock::now();
    before_ = rounds_;
  }
  // Returns the rate in GB/s and the longest time between two ends.
  std::pair<double, Clock::duration> stop() {
    const auto took = Clock::now() - begun_;
    const auto rounds = static_cast<double>(rounds_ - before_);
    stop_ = true;
    thread_.join();
    return {rounds * static_cast<double>(kOtherBytes) / us(took) / 1e3, longest_};
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> rounds_{0};
  std::uint64_t before_ = 0;
  Clock::time_point begun_;
  Clock::duration longest_{0};
  std::thread thread_;
};

// Times `step` every 5 ms, and prints the row without its end.
void timeUrgent(const char* kind, const char* name, int rounds, const std::function<void()>& step) {
  std::vector<double> all;
  for (int i = -5; i < rounds; ++i) {
    std::this_thread::sleep_for(5ms);
    const auto begun = Clock::now();
    step();
    if (i >= 0) all.push_back(us(Clock::now() - begun));
  }
  std::ranges::sort(all);
  fmt::print("{:6} {:28} {:10.0f} {:10.0f}", kind, name, median(all), all[all.size() * 99 / 100]);
}

void endRow(double rate, Clock::duration gap) {
  fmt::print(" {:10.3f} {:10.1f}\n", rate, us(gap) / 1e3);
  std::fflush(stdout);
}

void measure(Posts& posts, OpKind kind, const char* name, const Priority* others, int rounds) {
  std::optional<Others> beside;
  if (others != nullptr) beside.emplace(posts, kind, *others);
  Transfer transfer = posts.plan(kind, 0, kUrgentBytes, Priority::kUrgent);
  timeUrgent(opKindName(kind), name, rounds, [&] {
    must(transfer.post());
    must(transfer.wait(kLong));
  });
  const auto [rate, gap] = beside ? beside->stop() : std::pair(0.0, Clock::duration(0));
  endRow(rate, gap);
}

void measureSockets(const char* name, bool saturated, int rounds) {
  BareSocket urgent(kUrgentBytes), other(kOtherBytes);
  std::atomic<std::uint64_t> sent{0};
  std::jthread sender;
  if (saturated)
    sender = std::jthread([&](const std::stop_token& stop) {
      for (; !stop.stop_requested(); ++sent) other.step();
    });
  while (saturated && sent < kOthers) std::this_thread::yield();
  const auto begun = Clock::now();
  const std::uint64_t before = sent;
  timeUrgent("socket", name, rounds, [&] { urgent.step(); });
  const auto bytes = static_cast<double>((sent - before) * kOtherBytes);
  endRow(bytes / us(Clock::now() - begun) / 1e3, Clock::duration(0));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(10, std::atoi(argv[1])) : 200;
  fmt::print("{:6} {:28} {:>10} {:>10} {:>10} {:>10}\n", "", "urgent 1 MiB", "us, p50", "us, p99",
             "others GB/s", "gap, ms");
  const std::string netns = argc > 2 ? argv[2] : "";
  Child child([&](int in, int out) { return serve(netns, in, out); });
  Posts posts(child);
  const Priority normal = Priority::kNormal, background = Priority::kBackground,
                 urgent = Priority::kUrgent;
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    measure(posts, kind, "alone", nullptr, rounds);
    measure(posts, kind, "beside urgent ones", &urgent, rounds);
    measure(posts, kind, "beside normal ones", &normal, rounds);
    measure(posts, kind, "beside background ones", &background, rounds);
  }
  if (!netns.empty()) return 0;
  measureSockets("alone", false, rounds);
  measureSockets("beside a saturated one", true, rounds);
}
