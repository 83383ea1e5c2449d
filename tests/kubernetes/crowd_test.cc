// Many agents that meet at one API server. VIADUCT_MEET_CLIENTS sets their number.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "kubernetes/fake_kube.h"
#include "meet/place.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

const StopFlag kUnstopped{false};
constexpr int kThreads = 64;

int clientsWanted() {
  const char* const text = std::getenv("VIADUCT_MEET_CLIENTS");
  return text == nullptr ? 512 : std::max(std::atoi(text), 2);
}

std::string nameOf(int client) { return fmt::format("agent-{}", client); }

// A client is a place of its own. Each publishes its name, and finds two others, some of which are
// published later. As many clients as threads act at once.
// Ten seconds are for 4,096 clients.
TEST(KubernetesCrowd, AllFindEachOtherWithinTenSecondsWithFewRequests) {
  const int count = clientsWanted();
  FakeKube kube;
  std::vector<std::unique_ptr<MeetingPlace>> places(static_cast<std::size_t>(count));
  std::vector<std::unique_ptr<PublishedName>> entries(static_cast<std::size_t>(count));
  const auto inThreads = [count](auto&& one) {
    std::atomic<int> next = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int i = next++; i < count; i = next++) one(i);
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
    if (entry) entries[static_cast<std::size_t>(i)] = std::move(*entry);
    if (place) places[static_cast<std::size_t>(i)] = std::move(*place);
  });
  const std::chrono::duration<double> took = Clock::now() - begun;
  const double clients = count;
  const int watching = kube.count("list") + kube.count("watch");
  std::cout << fmt::format(
      "{} clients met in {:.2f} s; requests of each: {:.2f} create, {:.2f} get, {:.2f} update; of "
      "all together: {} list and watch\n",
      count, took.count(), kube.count("create") / clients, kube.count("get") / clients,
      kube.count("update") / clients, watching);
  EXPECT_EQ(failed, 0);
  EXPECT_LT(took, 10s);
  EXPECT_EQ(kube.tell("leases"), std::to_string(count));
  EXPECT_LE(kube.count("get"), 4 * count);
  EXPECT_LT(watching, 100);
  inThreads([&](int i) { entries[static_cast<std::size_t>(i)].reset(); });
  EXPECT_EQ(kube.tell("leases"), "0") << "all have withdrawn their names";
  kube.done();
}

}  // namespace
}  // namespace viaduct::testing
