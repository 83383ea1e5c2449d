#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/environment.h"
#include "measure/result/text.h"
#include "meet/groups/server.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/remarks.h"

namespace viaduct::app {
namespace {

struct MeetOptions {
  std::vector<std::string> listen = {};
  std::string token = {};
  bool insecure = false;
  std::chrono::nanoseconds detect = std::chrono::seconds(2);
};

void sayLine(const std::string& line) {
  std::tm local{};
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &local);
  fmt::print("{:%H:%M:%S} {}\n", local, line);
  std::fflush(stdout);
}

int runMeet(const MeetOptions& options) {
  // Blocks the signals before the server's thread starts, so that the thread does not receive them.
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);

  const auto listen =
      options.listen.empty() ? std::vector<std::string>{"127.0.0.1:7000"} : options.listen;
  const char* const secret = base::variable("VIADUCT_SECRET");
  const std::string token = options.token.empty() && secret != nullptr ? secret : options.token;
  auto server = meet::EmbeddedServer::start(
      {.listen = listen,
       .token = token,
       .insecure = options.insecure,
       .detect = std::chrono::duration_cast<std::chrono::milliseconds>(options.detect),
       .say = &sayLine});
  if (!server)
    return fail(server.error().text(),
                server.error().code == Code::kInvalid ? kExitUsage : kExitFailed);
  fmt::print("meeting place at {}{}\n", fmt::join((*server)->addresses(), ", "),
             token.empty() ? ", open to everyone" : ", with a token");
  std::fflush(stdout);

  int signal = 0;
  ::sigwait(&ends, &signal);
  const auto counts = (*server)->counts();
  fmt::print("ended, with {} and {}\n", measure::counted(counts.members, "member"),
             measure::counted(counts.groups, "group"));
  return kExitOk;
}

using MeetFlag = Flag<MeetOptions>;
constexpr std::array kMeetFlags{
    MeetFlag{
        "listen", "HOST:PORT ...", "127.0.0.1:7000",
        "addresses to listen on, joined by commas: host:port, [v6]:port or *:port; port 0 takes "
        "a free port",
        add<intoWords, &MeetOptions::listen>},
    MeetFlag{"token", "WORD", "VIADUCT_SECRET", "shared secret of the members",
             set<intoText, &MeetOptions::token>},
    MeetFlag{"secret", "WORD", "", "alias of token", set<intoText, &MeetOptions::token>},
    MeetFlag{"insecure", "", "", "accept members without a secret beyond loopback",
             set<intoYesNo, &MeetOptions::insecure>},
    MeetFlag{"detect", "TIME", "2s", "declare a member dead after this silence",
             set<intoPause, &MeetOptions::detect>},
};
constexpr auto kMeetAbout =
    "Run a meeting place as a process of its own.\n\n"
    "Benchmark members (`viaduct bench --meet HOST:PORT`) and agents (VIADUCT_MEET=HOST:PORT) find "
    "each other there. It runs until Ctrl-C. It prints its addresses, then one line per formed or "
    "ended group and per rejected caller.";
constexpr auto kMeetMore =
    "Beyond loopback it needs a token. Members prove that they know the token and never send it. "
    "ps shows the flag, but not VIADUCT_SECRET. See docs/meeting.md.\n\n"
    "Exit codes: 0 after Ctrl-C; 1 if it cannot listen; 2 if the command line is wrong.\n\n"
    "Example:\n"
    "  VIADUCT_SECRET=WORD viaduct meet --listen 0.0.0.0:7000";

}  // namespace

Command meetCommand() {
  return commandOf<MeetOptions>({.name = "viaduct meet",
                                 .about = kMeetAbout,
                                 .more = kMeetMore,
                                 .flags = kMeetFlags,
                                 .run = runMeet});
}

}  // namespace viaduct::app
