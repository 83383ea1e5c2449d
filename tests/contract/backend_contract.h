// The contract of every backend between agents. It is tested with two agents that have only the
// backend under test and the backend cuda.
#pragma once

#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/movable_clock.h"
#include "contract/pinned_bytes.h"
#include "device/driver_memory.h"
#include "device/real_gpu.h"
#include "support/ofi.h"
#include "support/paths.h"

namespace viaduct::testing {

using namespace std::chrono_literals;

// The backend under test, and where the memory of the ends a and b lies.
struct Subject {
  std::string backend;
  std::string driver = {};  // the library that has GPU 0; empty: all memory is the host's
  bool gpu_at_a = false, gpu_at_b = false;
  std::string name() const;  // "tcp", "tcp_gpu_to_host"
  friend void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name(); }
};

// All backends that are built in, with host memory.
std::vector<Subject> everyBackend();
// Backends with memory of GPU 0 of that driver, which most of them move in stages.
std::vector<Subject> everyBackendOfGpus(std::string_view driver);

#define VIADUCT_INSTANTIATE_CONTRACT(contract)                                                     \
  INSTANTIATE_TEST_SUITE_P(Every, contract, ::testing::ValuesIn(everyBackend()),                   \
                           [](const auto& one) { return one.param.name(); });                      \
  INSTANTIATE_TEST_SUITE_P(OnAFakeGpu, contract,                                                   \
                           ::testing::ValuesIn(everyBackendOfGpus(kFakeCuda)),                     \
                           [](const auto& one) { return one.param.name(); });                      \
  INSTANTIATE_TEST_SUITE_P(OnAGpu, contract, ::testing::ValuesIn(everyBackendOfGpus(kRealDriver)), \
                           [](const auto& one) { return one.param.name(); })

class BackendContract : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (const auto why = whyLeftOut(); !why.empty()) GTEST_SKIP() << why;
    open();
  }

  static const Subject& subject() { return GetParam(); }
  static const std::string& backend() { return subject().backend; }
  static bool onGpus() { return !subject().driver.empty(); }
  // Why this test cannot run for this subject; empty: it can.
  static std::string whyLeftOut();

  Settings settings(const std::string& name) const;
  // Sets VIADUCT_FAULTS for the next open().
  void inject(const std::string& faults) {
    base_.faults = faults;
    base_.faults_allowed = true;
  }
  // The number of rails of the backend under test.
  static std::size_t railsOf(const Agent& agent);
  // Opens both agents, and connects them.
  void open();
  void connect();

  // Call it before this thread uses memory that the agents' threads have used. Sockets order these
  // accesses, but TSan sees only the order of the agents' locks, which poll() takes.
  void comeBehindTheAgents() {
    a_->poll();
    b_->poll();
  }

  // Allocates memory of an agent, on its GPU if `gpu`.
  static Result<Pin> allocate(Agent& agent, bool gpu, std::uint64_t bytes,
                              AllocateOptions options = {});
  Result<Pin> allocateAtA(std::uint64_t bytes, AllocateOptions options = {}) {
    return allocate(*a_, subject().gpu_at_a, bytes, std::move(options));
  }
  Result<Pin> allocateAtB(std::uint64_t bytes, AllocateOptions options = {}) {
    return allocate(*b_, subject().gpu_at_b, bytes, std::move(options));
  }
  // Returns unpinned memory that lives as long as the test, on a GPU if `gpu`.
  Segment plain(bool gpu, std::uint64_t bytes);
  Segment plainAtA(std::uint64_t bytes) { return plain(subject().gpu_at_a, bytes); }
  Segment plainAtB(std::uint64_t bytes) { return plain(subject().gpu_at_b, bytes); }
  // The size of a long transfer. It is smaller for a fake GPU, which copies with this host's
  // processors.
  static std::uint64_t sized(std::uint64_t bytes) { return onGpus() ? bytes / 8 : bytes; }

  // Fills memory with bytes that depend on their offset and on `salt`.
  static void fill(std::span<std::byte> bytes, std::uint64_t salt);
  static bool holds(std::span<const std::byte> bytes, std::uint64_t salt);
  void fill(const Pin& pin, std::uint64_t salt, Part part = {}) const;
  void fillWith(const Pin& pin, std::byte one, Part part = {}) const;
  Contents contents(const Pin& pin, Part part = {}) const { return pinned_bytes_->of(pin, part); }
  bool holds(const Pin& pin, std::uint64_t salt, Part part = {}) const {
    return holds(contents(pin, part).bytes(), salt);
  }

  static Selection blocks(const Pin& pin, std::uint64_t bytes, std::uint64_t stride,
                          std::uint64_t count, std::vector<std::uint32_t> indices = {});
  static Selection whole(const Pin& pin) { return blocks(pin, pin.size(), pin.size(), 1); }
  // Waits until `at` knows the other end's pin of that label.
  static void waitForPin(const Peer& at, const std::string& label);

  // Plans a transfer over the backend under test. With memory of GPUs the agents have two backends.
  static Result<Transfer> plan(Agent& by, const Peer& peer, OpKind kind, const Selection& local,
                               const Selection& remote, TransferOptions options = {});
  Result<Transfer> plan(OpKind kind, const Selection& local, const Selection& remote,
                        TransferOptions options = {}) {
    return plan(*a_, *b_at_a_, kind, local, remote, std::move(options));
  }
  // The shares of the backend under test. Other shares are stages from or to a GPU.
  static std::vector<PathShare> carried(const Path& path);

  std::string fake_;  // VIADUCT_FAKE of the next open()
  // These times are long, because a busy machine delays heartbeats and answers.
  Settings base_{.detect = 8h, .grace = 60s};
  base::MovableClock clock_;  // of both agents; a test moves it instead of waiting
  std::optional<PinnedBytes> pinned_bytes_;
  std::vector<std::vector<std::byte>> plain_;
  std::vector<std::unique_ptr<DriverMemory>> plain_on_gpu_;
  std::optional<Agent> a_, b_;
  std::optional<Peer> b_at_a_, a_at_b_;
};

}  // namespace viaduct::testing
