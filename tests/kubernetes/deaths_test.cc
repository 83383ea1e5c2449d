// Agents of an API server that are killed, or that die with it.
#include <gtest/gtest.h>

#include <future>
#include <iostream>
#include <thread>

#include "kubernetes/fake_kube.h"
#include "meet/place.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

const StopFlag kOn{false};

class KubernetesDeaths : public ::testing::Test {
 protected:
  static std::unique_ptr<MeetingPlace> opened(std::chrono::seconds lease) {
    auto place = kubernetes::open({.where = "g", .detect = 1s}, lease);
    if (!place) ADD_FAILURE() << place.error().text();
    return place ? std::move(*place) : nullptr;
  }
  static double milliseconds(Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  }

  FakeKube kube_;
};

TEST_F(KubernetesDeaths, AKilledAgentIsNotBelievedAfterTwiceItsLease) {
  constexpr std::chrono::seconds kLease{4};
  Process member({kKubeMember, "a", std::to_string(kLease.count())});
  ASSERT_EQ(member.answer(), "ready");
  const auto place = opened(kLease);
  ASSERT_TRUE(place->find("a", 5s, kOn));
  member.kill();
  const auto killed = Clock::now();
  Result<std::string> found = std::string();
  while (found && Clock::now() < killed + 10 * kLease) found = place->find("a", 1s, kOn);
  const auto believed = Clock::now() - killed - 1s;  // the last find waits for a second
  std::cout << "believed for " << milliseconds(believed) << " ms after its death, with a lease of "
            << kLease.count() << " s\n";
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().text().find("has not renewed"), std::string::npos)
      << found.error().text();
  EXPECT_LE(believed, 2 * kLease);
  // A reader of the watch, and one that comes later, wait for its successor.
  auto later = std::async(std::launch::async, [&] { return place->find("a", 20s, kOn); });
  Process successor({kKubeMember, "a", std::to_string(kLease.count())});
  EXPECT_EQ(successor.answer(), "ready");
  EXPECT_TRUE(later.get());
  kube_.done();
}

TEST_F(KubernetesDeaths, AWaitingFindLearnsOfANameWithin50ms) {
  const auto place = opened(15s);
  auto best = Duration::max();
  for (int round = 0; round < 10 && best > 50ms; ++round) {
    const std::string name = "a" + std::to_string(round);
    auto later = std::async(std::launch::async, [&] {
      const auto found = place->find(name, 20s, kOn);
      return found ? Clock::now() : Clock::time_point::max();
    });
    while (kube_.tell("watches") != "1") std::this_thread::yield();
    const auto other = opened(15s);
    const auto entry = other->publish(name, "card", 20s);
    const auto published = Clock::now();
    ASSERT_TRUE(entry);
    best = std::min(best, later.get() - published);
  }
  std::cout << "found " << milliseconds(best) << " ms after it was published\n";
  EXPECT_LE(best, 50ms);
  kube_.done();
}

}  // namespace
}  // namespace viaduct::testing
