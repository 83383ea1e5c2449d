// A fake S3 server, and the settings that reach it. Threads: one.
#pragma once

#include <stdlib.h>
#include <viaduct/settings.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "process/process.h"
#include "support/paths.h"

namespace viaduct::testing {

class FakeStore {
 public:
  explicit FakeStore(const std::vector<std::string>& arguments = {}) {
    ::setenv("no_proxy", "*", 1);  // the server is on loopback
    std::vector<std::string> command{kServersPython, "-B", kFakeS3};
    command.insert(command.end(), arguments.begin(), arguments.end());
    server_ = std::make_unique<Process>(command);
    port_ = server_->answer().value_or("none");
    tell("bucket kv");
  }

  // Sends a command to the server, and returns its answer.
  std::string tell(const std::string& command) {
    return server_->ask(command).value_or("no answer");
  }
  // Values of Settings::others.
  std::map<std::string, std::string, std::less<>> others() const {
    return {{"VIADUCT_OBJECT_ENDPOINT", "http://127.0.0.1:" + port_},
            {"AWS_ACCESS_KEY_ID", "FAKEKEY"},
            {"AWS_SECRET_ACCESS_KEY", "fakesecret"}};
  }
  // Memory of this size with the bytes that the server's `put` stores.
  static std::vector<std::uint64_t> pattern(std::uint64_t bytes) {
    std::vector<std::uint64_t> out((bytes + 7) / 8);
    for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = i * 0x9E3779B97F4A7C15U;
    return out;
  }

 protected:
  std::unique_ptr<Process> server_;
  std::string port_;
};

}  // namespace viaduct::testing
