// The rate of reads and writes of one object: object_bench read|write KEY-URL BYTES ROUNDS.
// Settings come from the environment. Each line has a round's rate and the process's CPU time.
#include <fmt/format.h>
#include <sys/resource.h>
#include <viaduct/viaduct.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "must.h"

namespace {

using namespace std::chrono_literals;
using viaduct::Clock;

double cpuSeconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

viaduct::Selection whole(const viaduct::Pin& pin) {
  return viaduct::Selection{*viaduct::Blocks::strided(
      {.base = pin.info().address, .bytes = pin.info().bytes, .count = 1})};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::puts("usage: object_bench read|write URL BYTES ROUNDS"), 2;
  const bool writes = std::string_view(argv[1]) == "write";
  const auto bytes = std::strtoull(argv[3], nullptr, 10);
  auto settings = must(viaduct::settingsFromEnvironment());
  settings.backends = {"object"};
  settings.listen = {};
  auto agent = must(viaduct::Agent::open(settings));
  const auto self = must(agent.self());
  must(self.ready(30s));
  const auto object = must(
      agent.pin(viaduct::Segment::object(argv[2], {.bytes = bytes, .create = writes}), "object"));
  must(self.waitPin("object", 30s));
  const auto memory = must(agent.allocate(bytes));
  std::memset(memory.data(), 1, memory.size());
  auto transfer = must(agent.plan(writes ? viaduct::OpKind::kWrite : viaduct::OpKind::kRead, self,
                                  whole(memory), whole(object)));
  for (int round = 0; round < std::atoi(argv[4]); ++round) {
    const auto began = Clock::now();
    const double cpu = cpuSeconds();
    must(transfer.post({.deadline = 60s}));
    must(transfer.wait());
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    fmt::print("{:.3f} GB/s, {:.3f} s CPU\n", static_cast<double>(bytes) / seconds * 1e-9,
               cpuSeconds() - cpu);
  }
  return 0;
}
