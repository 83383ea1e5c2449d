#include <CLI/CLI.hpp>
#include <limits>

#include "viaduct/cli_value.h"
#include "viaduct/meet.h"

namespace viaduct::app {
namespace {

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

void declareMeet(CLI::App& app, MeetOptions& options) {
  CLI::App& meet = *app.add_subcommand("meet", kMeetAbout);
  meet.footer(kMeetMore);
  meet.add_option("--listen", options.listen,
                  "Addresses to listen on, joined by commas: host:port, [v6]:port or *:port; port "
                  "0 takes a free port [127.0.0.1:7000]")
      ->delimiter(',')
      ->type_name("HOST:PORT");
  meet.add_option("--token,--secret", options.token, "Shared secret of the members")
      ->envname("VIADUCT_SECRET");
  meet.add_flag("--insecure", options.insecure, "Accept members without a secret beyond loopback");
  addValue(
      meet, "--detect", "TIME",
      [&options](const std::string& text) { return intoPause(text, options.detect); },
      "Declare a member dead after this silence [2s]");
}

}  // namespace viaduct::app
