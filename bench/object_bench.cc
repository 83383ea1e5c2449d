// The rate of reads and writes of one object: object_bench read|write KEY-URL BYTES ROUNDS.
// Settings come from the environment. Each line has a round's rate and the process's CPU time.
#include "harness/agents.h"

using namespace viaduct;
using namespace viaduct::bench;

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "object_bench read|write URL BYTES ROUNDS");
  const bool writes = given.text(0) == "write";
  const auto bytes = given.number<std::uint64_t>(2, 0);
  auto settings = must(settingsFromEnvironment());
  settings.backends = {"object"};
  settings.listen = {};
  Agent agent = must(Agent::open(settings));
  const Peer self = must(agent.self());
  must(self.ready(kLong));
  const Pin object =
      must(agent.pin(Segment::object(given.text(1), {.bytes = bytes, .create = writes}), "object"));
  must(self.waitPin("object", kLong));
  const Pin memory = must(agent.allocate(bytes));
  std::memset(memory.data(), 1, memory.size());
  const auto whole = [](const Pin& pin) {
    return blocks({.base = pin.info().address, .bytes = pin.info().bytes, .count = 1});
  };
  Transfer transfer =
      must(agent.plan(writes ? OpKind::kWrite : OpKind::kRead, self, whole(memory), whole(object)));
  for (int round = 0; round < given.number(3, 0); ++round) {
    const double processor = processorSeconds();
    const double seconds = secondsOf([&] { postAndWait(transfer, {.deadline = kLong}); });
    fmt::print("{:.3f} GB/s, {:.3f} s CPU\n", static_cast<double>(bytes) / seconds * 1e-9,
               processorSeconds() - processor);
  }
}
