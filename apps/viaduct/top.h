// The subcommand `top`. Threads: the main one.
#pragma once

#include <chrono>

namespace CLI {
class App;
}

namespace viaduct::app {

struct TopOptions {
  std::chrono::nanoseconds interval = std::chrono::seconds(1);
  bool once = false;
  bool json = false;
};
void declareTop(CLI::App& app, TopOptions& options);
int runTop(const TopOptions& options);

}  // namespace viaduct::app
