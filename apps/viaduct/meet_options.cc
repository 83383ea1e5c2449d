#include <CLI/CLI.hpp>
#include <limits>

#include "viaduct/bench_values.h"
#include "viaduct/meet.h"

namespace viaduct::app {
namespace {

constexpr auto kMeetAbout =
    "Run a meeting place that stands alone.\n\n"
    "Members of a group (`viaduct bench --meet HOST:PORT`) and agents (VIADUCT_MEET=HOST:PORT) "
    "find\n"
    "each other at it. It says where it listens, and one line for each group that forms or ends "
    "and\n"
    "for each caller that is turned away, until Ctrl-C.";
constexpr auto kMeetMore =
    "Beyond loopback it wants a token, which members prove to know and never send; it may stand "
    "in\n"
    "VIADUCT_SECRET, where other users of this host do not see it. docs/meeting.md says more.";

}  // namespace

void declareMeet(CLI::App& app, MeetOptions& options) {
  CLI::App& meet = *app.add_subcommand("meet", kMeetAbout);
  meet.footer(kMeetMore);
  meet.add_option(
          "--listen", options.listen,
          "Addresses to listen on, host:port, [v6]:port or *:port, joined by commas; port 0 "
          "takes a free one [127.0.0.1:7000]")
      ->delimiter(',')
      ->type_name("HOST:PORT");
  meet.add_option("--token,--secret", options.token, "The members' secret [VIADUCT_SECRET]")
      ->envname("VIADUCT_SECRET");
  meet.add_flag("--insecure", options.insecure, "Let in whoever reaches the port, beyond loopback");
  meet.add_option_function<std::string>(
          "--detect",
          [&options](const std::string& text) {
            std::chrono::nanoseconds time{0};
            if (!intoTime(text, time) || time < std::chrono::milliseconds(10) ||
                time > std::chrono::hours(1))
              throw CLI::ValidationError("--detect",
                                         "\"" + text + "\" is not a duration from 10ms to 1h");
            options.detect = std::chrono::duration_cast<std::chrono::milliseconds>(time);
          },
          "A member that is silent for so long is dead [2s]")
      ->type_name("TIME");
}

}  // namespace viaduct::app
