// Groups of hundreds of members at a running etcd. The members are threads of one process; each has
// a place and connections of its own. Measures the times of forming, barriers, a gather
// and goodbyes, and a member's memory. Also counts etcd's calls for forming and for a barrier.
//   etcd_crowd http://127.0.0.1:2379 [members...]        (default 16 64 256 1024)
#include <barrier>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

#include "harness/program.h"
#include "meet/groups/group.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using namespace viaduct::meet;
using namespace std::chrono_literals;

const StopFlag kGoOn{false};
constexpr int kBarriers = 5;

// etcd's own counters, which do not depend on our counting.
struct Counters {
  double calls = 0, events = 0, watchers = 0;
};
Counters countersOf(const std::string& where) {
  const std::string command = "curl -s " + where + "/metrics";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "re"), &::pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
    text.append(buffer.data(), got);
  const auto sum = [&](const std::string& name) {
    double out = 0;
    for (std::size_t at = 0; (at = text.find("\n" + name, at)) != std::string::npos; ++at) {
      const std::size_t end = text.find('\n', at + 1);
      const std::size_t space = text.rfind(' ', end);
      out += std::strtod(text.c_str() + space, nullptr);
    }
    return out;
  };
  return {.calls = sum("grpc_server_msg_received_total"),
          .events = sum("etcd_debugging_mvcc_events_total"),
          .watchers = sum("etcd_debugging_mvcc_watcher_total")};
}

struct Times {
  double form = 0, barrier = 0, gather = 0, goodbye = 0;
};
struct Costs {
  Times times = {};
  Counters form = {}, barrier = {};
  double kib = 0;
  std::string failure = {};
};

Counters less(const Counters& a, const Counters& b) {
  return {a.calls - b.calls, a.events - b.events, a.watchers};
}

// The work of the members between the steps that the first member times.
class Run {
 public:
  Run(std::string where, std::uint32_t members)
      : where_(std::move(where)), members_(members), step_(members) {}

  Costs measure() {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < members_; ++i) threads.emplace_back([this, i] { member(i); });
    threads.clear();
    return costs_;
  }

 private:
  void member(std::uint32_t number) {
    const bool first = number == 0;
    if (first) mark();
    step_.arrive_and_wait();
    auto place = openGroupPlace({.where = where_, .detect = 30s});
    auto group = (*place)->join(
        {.group = "crowd", .size = members_, .name = fmt::format("m{}", number)}, 120s, kGoOn);
    if (!group) fail(group.error());
    step_.arrive_and_wait();
    if (first) {
      costs_.times.form = 1e3 * secondsSince(begun_);
      costs_.form = less(countersOf(where_), before_);
      costs_.kib = (residentKiB() - resident_) / members_;
      mark();
    }
    step_.arrive_and_wait();
    for (int i = 0; i < kBarriers; ++i) gather(group, "");
    step_.arrive_and_wait();
    if (first) {
      costs_.times.barrier = 1e3 * secondsSince(begun_) / kBarriers;
      costs_.barrier = less(countersOf(where_), before_);
      mark();
    }
    step_.arrive_and_wait();
    gather(group, std::string(32, 'x'));
    step_.arrive_and_wait();
    if (first) costs_.times.gather = 1e3 * secondsSince(begun_);
    if (first) mark();
    step_.arrive_and_wait();
    if (group) (void)(*group)->finish(60s);
    step_.arrive_and_wait();
    if (first) costs_.times.goodbye = 1e3 * secondsSince(begun_);
    group = Error{};
    place = Error{};
  }

  void mark() {
    before_ = countersOf(where_);
    resident_ = residentKiB();
    begun_ = Clock::now();
  }
  void gather(Result<std::unique_ptr<Group>>& group, const std::string& value) {
    if (!group) return;
    const auto values = (*group)->gather(value, 120s, kGoOn);
    if (!values) fail(values.error());
  }
  void fail(const Error& why) {
    const std::lock_guard lock(mutex_);
    costs_.failure = why.text();
  }

  const std::string where_;
  const std::uint32_t members_;
  std::barrier<> step_;
  std::mutex mutex_;
  Costs costs_;
  Counters before_;
  double resident_ = 0;
  Clock::time_point begun_;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "etcd_crowd URL [members...]");
  Table table({figure("members", 0), figure("form ms", 0), figure("barrier ms", 1),
               figure("gather 32 B ms", 1), figure("goodbye ms", 1),
               figure("a member: calls to form", 1), figure("per barrier", 1), figure("KiB", 0)});
  for (const std::string& size : given.from(1, {"16", "64", "256", "1024"})) {
    const auto members = base::numberIn<std::uint32_t>(size);
    if (!members) given.refuse();
    const Costs costs = Run(given.text(0), *members).measure();
    if (!costs.failure.empty()) die(costs.failure);
    const Times& t = costs.times;
    table.row(*members, t.form, t.barrier, t.gather, t.goodbye, costs.form.calls / *members,
              costs.barrier.calls / *members / kBarriers, costs.kib);
  }
}
