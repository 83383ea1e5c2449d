#include "viaduct/top.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <viaduct/deadline.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/net/survey.h"
#include "base/open_metrics.h"
#include "viaduct/commands.h"
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

// Waits for the signals that end the command. Returns whether one has arrived.
class Ending {
 public:
  Ending() {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGINT);
    ::sigaddset(&signals_, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &signals_, nullptr);
  }
  bool comesWithin(std::chrono::nanoseconds time) const {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
    return ::sigtimedwait(&signals_, nullptr, &wait) > 0;
  }

 private:
  sigset_t signals_ = {};
};

void print(const Moment& before, const Moment& now, const TopOptions& options) {
  const std::chrono::duration<double> between = now.at - before.at;
  const auto rows = topRows(before.agents, now.agents, between);
  if (options.json) {
    fmt::print("{}\n", base::dumpJson(topJson(rows, between), -1));
  } else {
    constexpr std::string_view kHomeAndClear = "\x1b[H\x1b[2J";
    if (!options.once && ::isatty(STDOUT_FILENO) == 1) fmt::print("{}", kHomeAndClear);
    fmt::print("{}", topTable(rows));
    if (rows.empty()) fmt::print("{}\n", kNobody);
  }
  std::fflush(stdout);
}

}  // namespace

int runTop(const TopOptions& options) {
  calledAs("viaduct top");
  const Ending ending;
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

}  // namespace viaduct::app
