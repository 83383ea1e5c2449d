// The subcommand `meet`. Threads: the main one.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace viaduct::app {

struct MeetOptions {
  std::vector<std::string> listen = {};
  std::string token = {};
  bool insecure = false;
  std::chrono::milliseconds detect = std::chrono::seconds(2);
};
void declareMeet(CLI::App& app, MeetOptions& options);
int runMeet(const MeetOptions& options);

}  // namespace viaduct::app
