// The cost of a metrics scrape for an agent with many peers. The peers are synthetic: they have no
// address, and the agent tries to connect to each of them again and again.
//   metrics_bench [PEERS [SCRAPES]]
#include "harness/agents.h"
#include "support/http_get.h"

using namespace viaduct;
using namespace viaduct::bench;

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "metrics_bench [PEERS [SCRAPES]]");
  const int peers = given.number(0, 10'000), scrapes = given.number(1, 200);
  Agent agent = must(Agent::open({.name = "hub", .metrics = "0"}));
  for (int i = 0; i < peers; ++i) must(agent.connect(Card{.name = fmt::format("peer-{}", i)}));
  std::size_t bytes = 0;
  const std::string endpoint = agent.statistics().endpoint;
  const auto [scraped, counted] = inTurns(
      {scrapes},
      {[&](int) {
         return 1e3 * secondsOf([&] { bytes = testing::httpGet(endpoint, "/metrics").size(); });
       },
       [&](int) { return 1e3 * secondsOf([&] { static_cast<void>(agent.statistics()); }); }});
  fmt::print("{} peers, {} scrapes of {} bytes\n", peers, scrapes, bytes);
  Table table(
      {words("", 28), figure("ms, median", 3, 10), figure("p99", 3, 10), figure("longest", 3, 10)});
  table.row("GET /metrics", scraped, scraped.quantile(0.99), scraped.most());
  table.row("Agent::statistics()", counted, counted.quantile(0.99), counted.most());
}
