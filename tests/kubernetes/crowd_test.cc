// Thousands of agents that meet at one API server.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <thread>

#include "kubernetes/fake_kube.h"
#include "meet/place.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

const StopFlag kUnstopped{false};
constexpr int kClients = 4096, kThreads = 64;

std::string nameOf(int client) { return fmt::format("agent-{}", client); }

// A client is a place of its own. Each publishes its name, and finds two others, some of which are
// published later. As many clients as threads act at once.
TEST(KubernetesCrowd, FourThousandClientsMeetWithinTenSeconds) {
  FakeKube kube;
  std::vector<std::unique_ptr<MeetingPlace>> places(kClients);
  std::vector<std::unique_ptr<PublishedName>> entries(kClients);
  const auto inThreads = [](auto&& one) {
    std::atomic<int> next = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int i = next++; i < kClients; i = next++) one(i);
      });
    for (auto& thread : threads) thread.join();
  };
  std::atomic<int> failed = 0;
  const auto begun = Clock::now();
  inThreads([&](int i) {
    auto place = openMeetingPlace({.where = "kubernetes:crowd"});
    auto entry = place ? (*place)->publish(nameOf(i), "card", 60s) : place.error();
    for (const int other : {std::max(i - 1, 0), i / 2})
      if (!place || !(*place)->find(nameOf(other), 60s, kUnstopped)) ++failed;
    if (!entry) ++failed;
    if (entry) entries[i] = std::move(*entry);
    if (place) places[i] = std::move(*place);
  });
  const std::chrono::duration<double> took = Clock::now() - begun;
  const double clients = kClients;
  const int watching = kube.count("list") + kube.count("watch");
  std::cout << fmt::format(
      "{} clients met in {:.2f} s; requests of each: {:.2f} create, {:.2f} get, {:.2f} update; of "
      "all together: {} list and watch\n",
      kClients, took.count(), kube.count("create") / clients, kube.count("get") / clients,
      kube.count("update") / clients, watching);
  EXPECT_EQ(failed, 0);
  EXPECT_LT(took, 10s);
  EXPECT_EQ(kube.tell("leases"), std::to_string(kClients));
  EXPECT_LE(kube.count("get"), 4 * kClients);
  EXPECT_LT(watching, 100);
  inThreads([&](int i) { entries[i].reset(); });
  EXPECT_EQ(kube.tell("leases"), "0") << "all have withdrawn their names";
  kube.done();
}

}  // namespace
}  // namespace viaduct::testing
