// Two idle agents use almost no processor time.
#include "process/pair.h"

// The provider net of libfabric 1.17 leaks memory for each endpoint.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libfabric.so"; }

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

struct Usage {
  std::int64_t cpu_us = 0, switches = 0, resident_kib = 0;
};

Usage usage(PeerProcess& peer) {
  const auto parts = words(peer.must("usage"));
  if (parts.size() != 3) return {};
  return {std::stoll(parts[0]), std::stoll(parts[1]), std::stoll(parts[2])};
}

// A link may be ready before its library has finished connecting. libfabric's tcp;ofi_rxm opens a
// connection in each direction, which takes some tens of milliseconds of progress. Waits until half
// a second costs almost nothing.
void settle(PeerProcess& peer) {
  for (int i = 0; i < 10; ++i) {
    const Usage before = usage(peer);
    EXPECT_TRUE(peer.ask("takenote 500").starts_with("error"));
    if (usage(peer).cpu_us - before.cpu_us < 5000) return;
  }
}

// True if this libfabric lacks the path's provider.
bool lacksProvider(const DataPath& path) {
  if (*path.provider == '\0') return false;
  const auto opened = Agent::open({.backends = {path.backend}, .ofi_provider = path.provider});
  return !opened && opened.error().code == Code::kNotFound;
}

class Idle : public ::testing::TestWithParam<DataPath> {
  void SetUp() override {
    if (lacksProvider(GetParam())) GTEST_SKIP() << "skipped: no provider " << GetParam().provider;
  }
};

TEST_P(Idle, TwoConnectedAgentsSleepBetweenHeartbeats) {
  Survivor survivor(GetParam(), 2s);
  auto one = survivor.start("one");
  auto two = survivor.start("two");
  one->must("import " + two->card());
  one->must("ready two 10000");
  two->must("ready one 10000");
  settle(*one);
  // The promise is 2 ms CPU a second for release builds. Sanitizers and a busy machine take more.
  // Two peers' heartbeats, sent and received, are a few sleeps per detection time of 2 s.
  constexpr double kMostCpuMs = 20, kMostSleeps = 40;
  double cpu_ms = kMostCpuMs, sleeps = kMostSleeps;
  // On a busy machine a library may still connect during the first looks.
  for (int look = 0; look < 5 && (cpu_ms >= kMostCpuMs || sleeps >= kMostSleeps); ++look) {
    const Usage before = usage(*one);
    const auto start = Clock::now();
    // An idle engine waits like this: a thread of its own that sleeps.
    EXPECT_TRUE(one->ask("takenote 2500").starts_with("error"));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const Usage after = usage(*one);
    cpu_ms = static_cast<double>(after.cpu_us - before.cpu_us) / 1e3 / seconds;
    sleeps = static_cast<double>(after.switches - before.switches) / seconds;
    std::printf("idle with two peers: %.2f ms CPU and %.1f sleeps a second\n", cpu_ms, sleeps);
  }
  EXPECT_LT(cpu_ms, kMostCpuMs);
  EXPECT_LT(sleeps, kMostSleeps);
}

INSTANTIATE_TEST_SUITE_P(Ways, Idle, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

#ifdef VIADUCT_WITH_OFI
INSTANTIATE_TEST_SUITE_P(Mute, Idle, ::testing::Values(kMute),
                         [](const auto& path) { return std::string(path.param.name); });

// By its timer alone a resting peer looks for work once a second, so a message has to wake it.
TEST(Mute, ARestingPeerIsWoken) {
  if (lacksProvider(kMute)) GTEST_SKIP() << "skipped: no provider " << kMute.provider;
  Survivor survivor(kMute);
  const auto victim = survivor.start();
  const auto small = survivor.memory(Survivor::kSmall, "mine");
  Transfer write = survivor.plan(OpKind::kWrite, small, "small");
  settle(*victim);
  Duration took{};
  constexpr int kTimes = 8;
  for (int i = 0; i < kTimes; ++i) {
    EXPECT_FALSE(survivor.agent().waitNote(400ms));
    const auto start = Clock::now();
    ASSERT_TRUE(write.post());
    ASSERT_TRUE(write.wait(10s));
    took += Clock::now() - start;
  }
  EXPECT_LT(took, kTimes * 200ms) << "half a second each, if nobody told it";
}
#endif

}  // namespace
}  // namespace viaduct::testing
