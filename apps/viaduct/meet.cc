#include "viaduct/meet.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <ctime>

#include "measure/result/text.h"
#include "meet/groups/server.h"
#include "viaduct/commands.h"

namespace viaduct::app {
namespace {

void sayLine(const std::string& line) {
  std::tm local{};
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &local);
  fmt::print("{:%H:%M:%S} {}\n", local, line);
  std::fflush(stdout);
}

}  // namespace

int runMeet(const MeetOptions& options) {
  // Blocks the signals before the server's thread starts, so that the thread does not receive them.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);

  const auto listen =
      options.listen.empty() ? std::vector<std::string>{"127.0.0.1:7000"} : options.listen;
  auto server = meet::EmbeddedServer::start({.listen = listen,
                                             .token = options.token,
                                             .insecure = options.insecure,
                                             .detect = options.detect,
                                             .say = &sayLine});
  if (!server) {
    fmt::print(stderr, "viaduct meet: {}\n", server.error().text());
    return server.error().code == Code::kInvalid ? kExitUsage : kExitFailed;
  }
  fmt::print("meeting place at {}{}\n", fmt::join((*server)->addresses(), ", "),
             options.token.empty() ? ", open to everyone" : ", with a token");
  std::fflush(stdout);

  int signal = 0;
  ::sigwait(&ends, &signal);
  const auto counts = (*server)->counts();
  fmt::print("ended, with {} and {}\n", measure::counted(counts.members, "member"),
             measure::counted(counts.groups, "group"));
  return kExitOk;
}

}  // namespace viaduct::app
