// The cost of a metrics scrape for an agent with many peers. The peers are synthetic: they have no
// address, and the agent tries to connect to each of them again and again.
//   metrics_bench [PEERS] [SCRAPES]
#include <fmt/format.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "must.h"
#include "support/http_get.h"

namespace {

using namespace viaduct;

// The milliseconds of each of `calls` calls.
std::vector<double> times(int calls, const std::function<void()>& call) {
  std::vector<double> out;
  for (int i = 0; i < calls; ++i) {
    const auto begun = Clock::now();
    call();
    out.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void print(const char* what, const std::vector<double>& ms) {
  fmt::print("{:<28} {:>10.3f} {:>10.3f} {:>10.3f}\n", what, ms[ms.size() / 2],
             ms[ms.size() * 99 / 100], ms.back());
}

}  // namespace

int main(int argc, char** argv) {
  const int peers = argc > 1 ? std::atoi(argv[1]) : 10'000;
  const int scrapes = argc > 2 ? std::atoi(argv[2]) : 200;
  Agent agent = must(Agent::open({.name = "hub", .metrics = "0"}));
  for (int i = 0; i < peers; ++i) must(agent.connect(Card{.name = fmt::format("peer-{}", i)}));
  std::size_t bytes = 0;
  const std::string endpoint = agent.statistics().endpoint;
  const auto scraped =
      times(scrapes, [&] { bytes = viaduct::testing::httpGet(endpoint, "/metrics").size(); });
  const auto counted = times(scrapes, [&] { static_cast<void>(agent.statistics()); });
  fmt::print("{} peers, {} scrapes of {} bytes\n{:<28} {:>10} {:>10} {:>10}\n", peers, scrapes,
             bytes, "ms", "median", "p99", "longest");
  print("GET /metrics", scraped);
  print("Agent::statistics()", counted);
  return 0;
}
