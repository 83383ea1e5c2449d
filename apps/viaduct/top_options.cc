#include <CLI/CLI.hpp>
#include <string>

#include "viaduct/cli_value.h"
#include "viaduct/top.h"

namespace viaduct::app {
namespace {

constexpr auto kTopAbout =
    "Show what this host's agents are doing, refreshed every second.\n\n"
    "It shows the agents of processes with VIADUCT_METRICS, in this network namespace: those of "
    "this user, and as root those of all users. Rates and latencies are of the last interval.";
constexpr auto kTopMore =
    "A transfer counts when it ends. ERRORS counts from the agent's start; docs/metrics.md lists "
    "the causes. On a terminal the table is redrawn, elsewhere each table follows the last.\n\n"
    "Exit codes: 0 after Ctrl-C or --once; 1 if no agent exports statistics; 2 if the command "
    "line is wrong.\n\n"
    "Examples:\n"
    "  VIADUCT_METRICS=27180 python3 engine.py &\n"
    "  viaduct top\n"
    "  viaduct top --once --json";

}  // namespace

void declareTop(CLI::App& app, TopOptions& options) {
  CLI::App& top = *app.add_subcommand("top", kTopAbout);
  top.footer(kTopMore);
  top.add_flag("--once", options.once, "Print one table, of one interval, and end");
  top.add_flag("--json", options.json, "Print a JSON object for each interval, a line each");
  addValue(
      top, "--interval", "TIME",
      [&options](const std::string& text) { return intoPause(text, options.interval); },
      "Time between two tables [1s]");
}

}  // namespace viaduct::app
