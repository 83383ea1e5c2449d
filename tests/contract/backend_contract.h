// The contract of every backend between agents, tested with two agents that have no other backend.
#pragma once

#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/movable_clock.h"
#include "support/ofi.h"
#include "support/ucx.h"

namespace viaduct::testing {

using namespace std::chrono_literals;

// The names of all backends that are built in.
std::vector<std::string> everyBackend();

class BackendContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    VIADUCT_SKIP_IF_UCX_CRASHES(GetParam());
    open();
  }

  Settings settings(const std::string& name) const {
    Settings settings = base_;
    settings.name = name;
    settings.backends = {GetParam()};
    settings.ofi_provider = ofiProvider();
    settings.weather = weather_;
    return settings;
  }
  // Opens both agents, and connects them.
  void open();
  void connect();

  // Call it before this thread uses memory that the agents' threads have used. Sockets order these
  // accesses, but TSan sees only the order of the agents' locks, which poll() takes.
  void comeBehindTheAgents() {
    a_->poll();
    b_->poll();
  }

  // Bytes that depend on their place and on `salt`.
  static void fill(std::span<std::byte> bytes, std::uint64_t salt);
  static bool holds(std::span<const std::byte> bytes, std::uint64_t salt);

  static Selection blocks(const Pin& pin, std::uint64_t bytes, std::uint64_t stride,
                          std::uint64_t count, std::vector<std::uint32_t> indices = {});
  static Selection whole(const Pin& pin) { return blocks(pin, pin.size(), pin.size(), 1); }
  // Waits until `at` knows the other end's pin of that label.
  static void waitForPin(const Peer& at, const std::string& label);

  // Used by the next open().
  std::string weather_;
  Settings base_{.detect = 8h};  // a busy machine delays heartbeats
  base::MovableClock clock_;     // of both agents; a test moves it instead of waiting
  std::optional<Agent> a_, b_;
  std::optional<Peer> b_at_a_, a_at_b_;
};

}  // namespace viaduct::testing
