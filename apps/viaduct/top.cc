#include <fmt/format.h>
#include <unistd.h>
#include <viaduct/deadline.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/net/survey.h"
#include "base/open_metrics.h"
#include "base/text_table.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/interrupt.h"
#include "viaduct/remarks.h"
#include "viaduct/top_rows.h"

namespace viaduct::app {
namespace {

constexpr std::string_view kNobody =
    "no agent of this user exports statistics here; what to do: start the processes with "
    "VIADUCT_METRICS=27180, and run this command in their network namespace";

// The metrics of this host's agents, and the time of reading.
struct Moment {
  Clock::time_point at;
  AgentSamples agents;
};

Moment lookAtAgents() {
  const auto texts = base::surveyNow(base::unixServers(base::kMetricsServers),
                                     {.path = "/agent", .root_asks_all = true});
  return {.at = Clock::now(), .agents = samplesOf(texts)};
}

struct TopOptions {
  std::chrono::nanoseconds interval = std::chrono::seconds(1);
  bool once = false;
  bool json = false;
};

void print(const Moment& before, const Moment& now, const TopOptions& options) {
  const std::chrono::duration<double> between = now.at - before.at;
  const auto rows = topRows(before.agents, now.agents, between);
  if (options.json) {
    fmt::print("{}\n", base::dumpJson(topJson(rows, between), -1));
  } else {
    constexpr std::string_view kHomeAndClear = "\x1b[H\x1b[2J";
    if (!options.once && ::isatty(STDOUT_FILENO) == 1) fmt::print("{}", kHomeAndClear);
    fmt::print("{}", topTable(rows, base::terminalWidth()));
    if (rows.empty()) fmt::print("{}\n", kNobody);
  }
  std::fflush(stdout);
}

int runTop(const TopOptions& options) {
  const EndingSignals ending;
  Moment before = lookAtAgents();
  if (before.agents.empty()) return fail(std::string(kNobody), kExitFailed);
  while (!ending.comesWithin(options.interval)) {
    Moment now = lookAtAgents();
    print(before, now, options);
    // Ends if the reader of the pipe, such as `head`, has closed it.
    if (options.once || std::ferror(stdout) != 0) break;
    before = std::move(now);
  }
  return kExitOk;
}

using TopFlag = Flag<TopOptions>;
constexpr std::array kTopFlags{
    TopFlag{"once", "", "", "print one table, of one interval, and end",
            set<intoYesNo, &TopOptions::once>},
    TopFlag{"json", "", "", "print a JSON object for each interval, a line each",
            set<intoYesNo, &TopOptions::json>},
    TopFlag{"interval", "TIME", "1s", "time between two tables",
            set<intoPause, &TopOptions::interval>},
};
constexpr auto kTopAbout =
    "Show what this host's agents are doing, refreshed every second.\n\n"
    "It shows the agents of processes with VIADUCT_METRICS, in this network namespace: those of "
    "this user, and as root those of all users. Rates and latencies are of the last interval.";
constexpr auto kTopMore =
    "A transfer counts when it ends. ERRORS counts from the agent's start; docs/errors.md lists "
    "the causes. On a terminal the table is redrawn, elsewhere each table follows the last.\n\n"
    "Exit codes: 0 after Ctrl-C or --once; 1 if no agent exports statistics; 2 if the command "
    "line is wrong.\n\n"
    "Examples:\n"
    "  VIADUCT_METRICS=27180 python3 engine.py &\n"
    "  viaduct top\n"
    "  viaduct top --once --json";

}  // namespace

Command topCommand() {
  return commandOf<TopOptions>({.name = "viaduct top",
                                .about = kTopAbout,
                                .more = kTopMore,
                                .flags = kTopFlags,
                                .run = runTop});
}

}  // namespace viaduct::app
