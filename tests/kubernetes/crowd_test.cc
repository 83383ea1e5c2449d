// Thousands of agents that meet at one API server.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <iostream>
#include <latch>
#include <thread>

#include "kubernetes/fake_kube.h"
#include "meet/place.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

const StopFlag kUnstopped{false};
constexpr int kClients = 4096;

std::string nameOf(int client) { return fmt::format("agent-{}", client % kClients); }

// Each request of a client that runs at once has a connection of its own, with three descriptors.
bool mayOpen(rlim_t files) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < files) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// All publish at once, and each finds two others.
TEST(KubernetesCrowd, FourThousandClientsMeetWithinTenSeconds) {
  if (!mayOpen(4 * kClients)) GTEST_SKIP() << "skipped: no limit of " << 4 * kClients << " files";
  FakeKube kube;
  std::latch ready(kClients + 1);
  std::atomic<int> failed = 0, done = 0;
  std::latch leave(1);
  const auto client = [&](int i) {
    const auto place = openMeetingPlace({.where = "kubernetes:crowd"});
    ready.arrive_and_wait();
    const auto entry = place ? (*place)->publish(nameOf(i), "card", 60s) : place.error();
    if (!entry) ++failed;
    for (const int other : {i + 1, i + kClients / 2})
      if (!place || !(*place)->find(nameOf(other), 60s, kUnstopped)) ++failed;
    ++done;
    done.notify_one();
    leave.wait();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) threads.emplace_back(client, i);
  ready.arrive_and_wait();
  const auto begun = Clock::now();
  for (int so_far = done; so_far < kClients; so_far = done) done.wait(so_far);
  const std::chrono::duration<double> took = Clock::now() - begun;
  const int creates = kube.count("create"), gets = kube.count("get"),
            updates = kube.count("update"), watching = kube.count("list") + kube.count("watch");
  std::cout << fmt::format(
      "{} clients met in {:.2f} s; requests of each: {:.2f} create, {:.2f} get, {:.2f} update; of "
      "all together: {} list and watch\n",
      kClients, took.count(), creates / double{kClients}, gets / double{kClients},
      updates / double{kClients}, watching);
  EXPECT_EQ(failed, 0);
  EXPECT_LT(took, 10s);
  EXPECT_EQ(kube.tell("leases"), std::to_string(kClients));
  EXPECT_LE(creates + gets, 7 * kClients);
  EXPECT_LT(watching, 100);
  leave.count_down();
  for (auto& one : threads) one.join();
  EXPECT_EQ(kube.tell("leases"), "0") << "all have withdrawn their names";
  kube.done();
}

}  // namespace
}  // namespace viaduct::testing
