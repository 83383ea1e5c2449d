// One end of a measurement whose two ends have different rails, for a test:
//   rails_peer initiator RAILS       prints its card, waits for a target, and prints its verdict
//   rails_peer target RAILS CARD     connects to the initiator of that card, and serves it
// RAILS: addresses to listen at and to connect from, joined by commas.
#include <cstdio>
#include <string>
#include <vector>

#include "base/stop.h"
#include "measure/p2p/initiator.h"
#include "measure/p2p/target.h"
#include "process/words.h"

namespace {

using namespace viaduct;
using namespace std::chrono_literals;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out{""};
  for (const char c : text) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

Result<Agent> open(const std::string& name, const std::vector<std::string>& rails) {
  Settings settings{.name = name, .backends = {"tcp"}, .rails = rails};
  settings.listen.clear();
  for (const std::string& rail : rails) settings.listen.push_back(rail + ":0");
  return Agent::open(settings);
}

Status initiate(const std::vector<std::string>& rails) {
  VIADUCT_TRY(Agent agent, open("initiator", rails));
  std::printf("%s\n", viaduct::testing::toHex(agent.exportCard()).c_str());
  std::fflush(stdout);
  VIADUCT_TRY(const Note hello, agent.waitNote(20s));
  VIADUCT_TRY(const Peer peer, agent.peer(hello.from));
  const base::StopFlag stop{false};
  measure::p2p::P2pInitiator initiator(agent, {.rails = rails}, peer, stop);
  VIADUCT_CHECK(initiator.greet(20s, [](const std::string&) {}));
  const measure::Spec spec{
      .rows = {{.block_bytes = 4 << 20, .warm_iterations = 1, .iterations = 10}}};
  return initiator.measure(spec, [](const measure::Composed& measured) {
    const measure::Row& row = measured.row;
    std::printf("%s: %s\n", verdictName(row.verdict), row.why.c_str());
  });
}

Status serve(const std::vector<std::string>& rails, const std::string& card) {
  VIADUCT_TRY(Agent agent, open("target", rails));
  VIADUCT_TRY(const Peer peer, agent.importCard(viaduct::testing::fromHex(card)));
  VIADUCT_CHECK(peer.ready(20s));
  VIADUCT_CHECK(peer.note("here"));
  const base::StopFlag stop{false};  // the test ends this process
  measure::p2p::serveP2p(agent, {.rails = rails}, {}, [](const std::string&) {}, stop);
  return Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() < 3) return 2;
  const Status done = words[1] == "initiator" ? initiate(split(words[2]))
                      : words.size() == 4     ? serve(split(words[2]), words[3])
                                              : Status(Error{.operation = "no card"});
  if (done) return 0;
  std::printf("error: %s\n", done.error().text().c_str());
  return 1;
}
