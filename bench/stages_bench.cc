// The rate from file to file of two agents, in stages, beside that from memory to memory over the
// same connection. The cases take turns.
//
// usage: stages_bench FOLDER [ROUNDS [MIB [NAMESPACE ADDRESS]]]
// FOLDER gets two files of MIB mebibytes (default 256). With NAMESPACE, the second agent runs in
// that network namespace, and listens at ADDRESS.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/fd.h"
#include "forked.h"
#include "must.h"

namespace viaduct::bench {
namespace {

using namespace std::chrono_literals;

struct Plan {
  std::string folder;
  int rounds = 7;
  std::uint64_t bytes = std::uint64_t{256} << 20U;
  std::string name_space, address;
};

Agent open(const char* name, const std::string& address) {
  Settings settings{.name = name, .backends = {"tcp", "file"}};
  if (!address.empty()) settings.listen = {address + ":0"};
  return must(Agent::open(settings));
}

// The end that only lends its memory and its file. Ends when its pipe ends.
Status target(const Plan& plan, int in, int out) {
  if (!plan.name_space.empty()) {
    const base::Fd there(::open(("/run/netns/" + plan.name_space).c_str(), O_RDONLY | O_CLOEXEC));
    if (!there || ::setns(there.get(), CLONE_NEWNET) != 0)
      return systemError(Code::kInvalid, "setns", errno);
  }
  Agent agent = open("target", plan.address);
  VIADUCT_TRY(const Pin memory, agent.allocate(plan.bytes, {.label = "memory"}));
  VIADUCT_TRY(const Pin file, agent.pin(Segment::file(plan.folder + "/target",
                                                      {.bytes = plan.bytes, .create = true}),
                                        "file"));
  put(out, agent.exportCard());
  get(in);
  return Ok{};
}

struct Case {
  const char* name;
  Transfer transfer;
  std::vector<double> rates = {};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run(const Plan& plan) {
  const Child child([&](int in, int out) { return target(plan, in, out); });
  const auto card = get(child.in());
  if (card.empty()) die("the second process has failed");
  Agent agent = open("initiator", {});
  Peer peer = must(agent.importCard(card));
  if (const Status ready = peer.ready(20s); !ready) die(ready.error().text());
  const Pin memory = must(agent.allocate(plan.bytes));
  const Pin file = must(agent.pin(
      Segment::file(plan.folder + "/initiator", {.bytes = plan.bytes, .create = true}), "file"));
  const auto all = [](const PinInfo& pin) {
    return Selection{must(Blocks::strided({.base = pin.address, .bytes = pin.bytes, .count = 1}))};
  };
  const auto there = [&](const char* label) { return must(peer.waitPin(label, 20s)); };
  const auto planned = [&](const PinInfo& from, const PinInfo& into) {
    return must(agent.plan(OpKind::kWrite, peer, {all(from)}, {all(into)}));
  };
  std::vector<Case> cases;
  cases.push_back({"memory to memory", planned(memory.info(), there("memory"))});
  cases.push_back({"file to memory", planned(file.info(), there("memory"))});
  cases.push_back({"memory to file", planned(memory.info(), there("file"))});
  cases.push_back({"file to file", planned(file.info(), there("file"))});
  for (int round = 0; round <= plan.rounds; ++round)
    for (Case& one : cases) {
      const auto start = Clock::now();
      if (const Status posted = one.transfer.post({.deadline = 600s}); !posted)
        die(posted.error().text());
      if (const Status ended = one.transfer.wait(600s); !ended) die(ended.error().text());
      const std::chrono::duration<double> took = Clock::now() - start;
      if (round == 0) continue;  // writes the files' blocks for the first time
      one.rates.push_back(static_cast<double>(plan.bytes) / took.count() * 1e-6);
    }
  fmt::print("{:18} {:>8} {:>14} {:>6}   path\n", "", "MB/s", "least to most", "of 1st");
  for (const Case& one : cases) {
    const auto [least, most] = std::minmax_element(one.rates.begin(), one.rates.end());
    fmt::print("{:18} {:8.1f} {:6.0f} to {:4.0f} {:6.2f}   {}\n", one.name, median(one.rates),
               *least, *most, median(one.rates) / median(cases[0].rates),
               one.transfer.path().text());
  }
}

}  // namespace
}  // namespace viaduct::bench

int main(int argc, char** argv) {
  viaduct::bench::Plan plan;
  if (argc > 1) plan.folder = argv[1];
  if (argc > 2) plan.rounds = std::atoi(argv[2]);
  if (argc > 3) plan.bytes = static_cast<std::uint64_t>(std::atoll(argv[3])) << 20U;
  if (argc == 6) {
    plan.name_space = argv[4];
    plan.address = argv[5];
  }
  if (plan.folder.empty() || plan.rounds < 1 || plan.bytes == 0 || argc > 6 || argc == 5) {
    fmt::print(stderr, "usage: stages_bench FOLDER [ROUNDS [MIB [NAMESPACE ADDRESS]]]\n");
    return 2;
  }
  viaduct::bench::run(plan);
  return 0;
}
