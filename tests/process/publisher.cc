// A process with an agent that publishes a name and memory, and drains on SIGTERM:
// publisher NAME MEET BACKEND. It prints "ready", and at its end "drained REST MS": the number of
// peers that were cut off, and how long the drain took.
#include <signal.h>
#include <viaduct/viaduct.h>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include "process/published.h"

namespace {

using namespace viaduct;
using namespace std::chrono_literals;
namespace published = viaduct::testing::published;

int fail(const Error& why) {
  std::cout << "error: " << why.text() << std::endl;
  return 1;
}

// Tries until the former agent of this name gives the name up, at the start of its drain.
Result<Agent> openOnceTheNameIsFree(const Settings& settings) {
  for (;;) {
    auto agent = Agent::open(settings);
    if (agent || agent.error().code != Code::kBusy) return agent;
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace

int main(int, char** argv) {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before the agent's threads

  Settings settings;
  settings.name = argv[1];
  settings.meet = argv[2];
  settings.backends = {argv[3]};
  settings.secret = "swordfish";
  settings.detect = published::kDetect;
  auto agent = openOnceTheNameIsFree(settings);
  if (!agent) return fail(agent.error());
  auto data = agent->allocate(published::kBlocks * published::kBlock, {.label = "data"});
  if (!data) return fail(data.error());
  published::fill(data->bytes(), published::seedOf(settings.name));
  // Peers wait for the label "room", so the data is complete before they read it.
  auto room = agent->allocate(published::kPeers * published::kBlock, {.label = "room"});
  if (!room) return fail(room.error());
  std::cout << "ready" << std::endl;

  int signal = 0;
  ::sigwait(&ends, &signal);
  const auto start = Clock::now();
  const auto rest = agent->drain(20s);
  if (!rest) return fail(rest.error());
  const auto took = std::chrono::duration<double, std::milli>(Clock::now() - start);
  std::cout << "drained " << rest->size() << " " << took.count() << std::endl;
  return 0;
}
