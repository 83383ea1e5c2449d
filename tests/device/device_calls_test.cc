// Each call of the driver fails once. The operation that made it fails with an error that names the
// call, or works without it. The same operation works when it is repeated, and nothing is left of
// the driver at the end. Each test runs in a process of its own, so that it sees the first calls
// too.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "device/fake_cuda.h"
#include "support/bytes.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 1 << 20;

struct Case {
  const char* call;
  unsigned nth;
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.call << " " << one.nth; }
};

#define VIADUCT_NAME(member, name, suffix, version, need, arguments) #name,
constexpr std::array kCalls{VIADUCT_CUDA_CALLS(VIADUCT_NAME)};
#undef VIADUCT_NAME

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* call : kCalls)
    for (const unsigned nth : {1U, 2U, 4U}) all.push_back({call, nth});
  return all;
}

// Whether a call gives something back to the driver. If such a call fails, the driver keeps the
// thing.
bool givesBack(std::string_view call) {
  for (const char* part :
       {"Free", "Destroy", "Release", "Unload", "Unregister", "Unmap", "Close", "PopCurrent"})
    if (call.find(part) != std::string_view::npos) return true;
  return false;
}

class DeviceCalls : public ::testing::TestWithParam<Case> {
 protected:
  // Runs the action, and repeats it if it failed.
  template <class Value>
  Value must(const std::function<Result<Value>()>& action) const {
    Result<Value> got = action();
    if (!got) {
      EXPECT_NE(got.error().text().find(GetParam().call), std::string::npos) << got.error().text();
      got = action();
    }
    EXPECT_TRUE(got) << "again: " << got.error().text();
    if (!got) ::_exit(1);
    return *std::move(got);
  }
  static Result<Agent> open(const char* name) {
    return Agent::open(Settings{
        .name = name,
        .backends = {"tcp", "cuda"},
        .others = {{"VIADUCT_CUDA_LIBRARY", kFakeCuda}, {"VIADUCT_CUDA_KERNEL_BELOW", "32KiB"}}});
  }
  Pin gpu(Agent& agent, const char* label, std::uint32_t device) const {
    return must<Pin>([&] { return agent.allocate(kBytes, {.label = label, .device = device}); });
  }
  void move(Agent& from, const Peer& to, const Pin& here, const char* there, std::uint64_t block,
            const std::string& require) const {
    must<bool>([&]() -> Result<bool> {
      VIADUCT_TRY(const PinInfo info, to.waitPin(there, 20s));
      const auto all = [&](std::uint64_t base) {
        return Selection{*Blocks::strided({.base = base, .bytes = block, .count = kBytes / block})};
      };
      VIADUCT_TRY(auto transfer, from.plan(OpKind::kWrite, to, {all(here.info().address)},
                                           {all(info.address)}, {.require = require}));
      VIADUCT_CHECK(transfer.post());
      VIADUCT_CHECK(transfer.wait(60s));
      return true;
    });
  }
  void work() const {
    auto a = open("a");
    auto b = open("b");
    ASSERT_TRUE(a && b);
    const auto peer = a->connect(b->card());
    ASSERT_TRUE(peer && peer->ready(20s));
    const Pin near = gpu(*a, "near", 0);
    const Pin far = gpu(*b, "far", 1);
    const auto host = a->allocate(kBytes, {.label = "host"});
    ASSERT_TRUE(host);
    for (const std::uint64_t block : {kBytes, std::uint64_t{4096}}) {
      move(*a, *peer, near, "far", block, "");
      move(*a, *peer, *host, "far", block, "");
      move(*a, *peer, near, "far", block, "backend:tcp");
    }
  }
  // A closed agent waits for a busy GPU only shortly, and frees the rest when the GPU is done.
  void expectNothingLeft() const {
    if (givesBack(GetParam().call)) return;
    const Deadline until = 20s;
    for (const char* what : {"contexts", "memory", "host memory", "reservations", "streams",
                             "events", "handles", "modules"}) {
      while (fakeCudaHeld(what) != 0 && !until.passed()) std::this_thread::sleep_for(1ms);
      EXPECT_EQ(fakeCudaHeld(what), 0U) << what;
    }
  }
};

TEST_P(DeviceCalls, FailOnceWithoutHarm) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string fault =
        std::string(GetParam().call) + ":" + std::to_string(GetParam().nth) + ":1";
    ::setenv("FAKE_CUDA_FAIL", fault.c_str(), 1);
    work();
    if (!HasFailure()) expectNothingLeft();
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Between GPUs that cannot reach each other, the driver copies memory of cuMemAlloc only.
TEST(DevicePeers, WithoutAccessTransfersGoThroughHostMemory) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("FAKE_CUDA_PEERS", "0", 1);
    const Settings settings{
        .backends = {"tcp", "cuda"},
        .others = {{"VIADUCT_CUDA_LIBRARY", kFakeCuda}, {"VIADUCT_CUDA_KERNEL_BELOW", "32KiB"}}};
    auto a = Agent::open(settings);
    auto b = Agent::open(settings);
    ASSERT_TRUE(a && b);
    const auto peer = a->connect(b->card());
    ASSERT_TRUE(peer && peer->ready(20s));
    const auto near = a->allocate(kBytes, {.device = 0});
    const auto far = b->allocate(kBytes, {.label = "far", .device = 1});
    ASSERT_TRUE(near && far);
    const auto info = peer->waitPin("far", 20s);
    ASSERT_TRUE(info);
    const auto all = [](std::uint64_t base) {
      return Selection{*Blocks::strided({.base = base, .bytes = kBytes, .count = 1})};
    };
    std::memset(fakeCudaAlias(near->info().address), 'x', kBytes);
    auto transfer =
        a->plan(OpKind::kWrite, *peer, {all(near->info().address)}, {all(info->address)});
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    const auto ended = transfer->wait(60s);
    EXPECT_TRUE(ended) << ended.error().text();
    EXPECT_EQ(transfer->path().shares.size(), 3U) << transfer->path().text();
    EXPECT_EQ(fakeCudaAlias(info->address)[kBytes - 1], 'x');
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, DeviceCalls, ::testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.call + ("_" + std::to_string(test.param.nth));
});

}  // namespace
}  // namespace viaduct::testing
