// The time of an urgent transfer of 1 MiB over tcp: alone, and beside background transfers that
// saturate the path. The target is another process: docs/measured/priority.md. The floor is two
// plain sockets, of which one is saturated. With a NETNS, the target runs in that network
// namespace, and there is no floor.   priority_bench [ROUNDS [NETNS]]
#include <array>
#include <optional>
#include <thread>

#include "bare_socket.h"
#include "harness/agents.h"
#include "harness/beside.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using namespace std::chrono_literals;

constexpr std::uint64_t kUrgentBytes = 1 << 20, kOtherBytes = 8 << 20;
constexpr std::uint64_t kOthers = 4;  // background transfers in flight
constexpr std::uint64_t kRoom = kUrgentBytes + kOthers * kOtherBytes;

// Keeps transfers of one class in flight, on one thread, until the object is destroyed.
class Others {
 public:
  Others(Source& source, OpKind kind, Priority priority) {
    for (std::uint64_t i = 0; i < kOthers; ++i) {
      all_.push_back(source.plan(
          kind, {.base = kUrgentBytes + i * kOtherBytes, .bytes = kOtherBytes, .count = 1},
          {.priority = priority}));
      must(all_.back().post());
    }
    thread_.emplace([this] { step(); }, 2 * kOthers);
    begun_ = Clock::now();
    before_ = thread_->steps();
  }
  struct Figures {
    double gb_per_s = 0, gap_ms = 0;  // gap: the longest time between the ends of two transfers
  };
  Figures stop() {
    const double bytes = static_cast<double>((thread_->steps() - before_) * kOtherBytes);
    const double rate = bytes / secondsSince(begun_) / 1e9;
    thread_.reset();
    for (Transfer& one : all_) must(one.wait(kLong));
    return {rate, 1e3 * longest_};
  }

 private:
  void step() {
    must(all_[ended_ % kOthers].wait(kLong));
    must(all_[ended_ % kOthers].post());
    const auto now = Clock::now();
    if (ended_++ > kOthers) longest_ = std::max(longest_, secondsBetween(last_, now));
    last_ = now;
  }

  std::vector<Transfer> all_;
  std::uint64_t ended_ = 0, before_ = 0;
  Clock::time_point last_, begun_;
  double longest_ = 0;
  std::optional<Beside> thread_;
};

// Microseconds of `step`, every 5 ms.
Samples timeUrgent(int rounds, const std::function<void()>& step) {
  return inTurns({rounds, 5}, {[&](int) {
                   std::this_thread::sleep_for(5ms);
                   return 1e6 * secondsOf(step);
                 }})[0];
}

void print(Table& table, const char* kind, const char* name, const Samples& us,
           const Others::Figures& others) {
  table.row(kind, name, us, us.quantile(0.99), others.gb_per_s, others.gap_ms);
}

void measure(Table& table, Source& source, OpKind kind, const char* name,
             std::optional<Priority> others, int rounds) {
  std::optional<Others> beside;
  if (others) beside.emplace(source, kind, *others);
  Transfer transfer =
      source.plan(kind, {.bytes = kUrgentBytes, .count = 1}, {.priority = Priority::kUrgent});
  const Samples us = timeUrgent(rounds, [&] { postAndWait(transfer); });
  print(table, opKindName(kind), name, us, beside ? beside->stop() : Others::Figures());
}

void measureSockets(Table& table, const char* name, bool saturated, int rounds) {
  BareSocket urgent(kUrgentBytes), other(kOtherBytes);
  std::optional<Beside> sender;
  if (saturated) sender.emplace([&] { other.step(); }, kOthers);
  const auto sent = [&] { return sender ? sender->steps() : 0; };
  const auto begun = Clock::now();
  const std::uint64_t before = sent();
  const Samples us = timeUrgent(rounds, [&] { urgent.step(); });
  const auto bytes = static_cast<double>((sent() - before) * kOtherBytes);
  print(table, "socket", name, us, {.gb_per_s = bytes / secondsSince(begun) / 1e9});
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "priority_bench [ROUNDS [NETNS]]");
  const int rounds = std::max(10, given.number(0, 200));
  const std::string network = given.text(1);
  Table table({words("", 6), words("urgent 1 MiB", 28), figure("us, p50", 0, 10),
               figure("us, p99", 0, 10), figure("others GB/s", 3), figure("gap, ms", 1, 10)});
  Settings settings{.backends = {"tcp"}};
  if (!network.empty()) settings.listen = {"0.0.0.0:0"};
  const TargetProcess target(settings, kRoom, network.empty() ? "" : "/run/netns/" + network);
  Source source({.backends = {"tcp"}}, kRoom, target.card);
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    measure(table, source, kind, "alone", {}, rounds);
    measure(table, source, kind, "beside urgent ones", Priority::kUrgent, rounds);
    measure(table, source, kind, "beside normal ones", Priority::kNormal, rounds);
    measure(table, source, kind, "beside background ones", Priority::kBackground, rounds);
  }
  if (!network.empty()) return 0;
  measureSockets(table, "alone", false, rounds);
  measureSockets(table, "beside a saturated one", true, rounds);
}
