// One end of a storm in a process that may be stopped and killed at any instant. Its first input
// line names the other end: NAME BACKEND heap|allocate SEED PROVIDER|- DETECT CARD; it answers
// "ready". Then it prints a line for each violation. The next input line ends it, and is answered
// with its counts.
#include <viaduct/viaduct.h>

#include <iostream>
#include <string>
#include <thread>

#include "process/checked_traffic.h"
#include "process/words.h"

namespace {

using namespace viaduct;
using viaduct::testing::CheckedTraffic;

void say(const std::string& line) { std::cout << line << std::endl; }

int fail(const Error& why) {
  say("violation: " + why.text());
  return 1;
}

}  // namespace

int main() {
  std::string line;
  std::getline(std::cin, line);
  const auto in = viaduct::testing::words(line);
  auto agent = Agent::open({.name = in.at(0),
                            .backends = {in.at(1)},
                            .ofi_provider = in.at(4) == "-" ? "" : in[4],
                            .detect = std::chrono::milliseconds(std::stoull(in.at(5))),
                            .grace = viaduct::testing::kStormGrace});
  if (!agent) return fail(agent.error());
  CheckedTraffic traffic(*agent, "survivor", in.at(2) == "heap", std::stoull(in.at(3)),
                         [](const std::string& what) { say("violation: " + what); });
  const auto peer = agent->importCard(viaduct::testing::fromHex(in.at(6)));
  if (!peer) return fail(peer.error());
  const std::jthread notes([&](const std::stop_token& over) {
    while (!over.stop_requested())
      if (const auto note = agent->waitNote(std::chrono::milliseconds(20))) traffic.take(*note);
  });
  say("ready");
  std::getline(std::cin, line);
  traffic.stop();
  say("counted " + traffic.counts());
  return 0;
}
