// Thousands of clients of one meeting place in this process. VIADUCT_MEET_CLIENTS sets
// their number, VIADUCT_MEET_AWAY the seconds for which the server is gone.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <viaduct/deadline.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "contract/meeting_places.h"
#include "meet/place.h"
#include "process/process.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

const StopFlag kNeverStop{false};
constexpr auto kPatience = 120s;

std::size_t numberFrom(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Lets this process open `count` descriptors, if the system allows it.
bool raiseDescriptors(std::size_t count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= count) return true;
  limit.rlim_cur = count;
  limit.rlim_max = std::max<rlim_t>(limit.rlim_max, count);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

class MeetingCrowd : public ::testing::TestWithParam<PlaceKind> {
 protected:
  void SetUp() override {
    if (!running_) GTEST_SKIP() << "skipped: no " << GetParam().name << " on this machine";
    // At the embedded place a client has a connection, whose other end is in this process, too.
    const std::size_t needed = 2 * clients_ + 1000;
    if (!raiseDescriptors(needed)) GTEST_SKIP() << "skipped: no " << needed << " descriptors";
  }
  // Calls `one` for each client. Each thread has several clients, because thousands of waiting
  // threads would measure the scheduler.
  template <class One>
  static void forEach(std::size_t clients, One&& one) {
    const std::size_t workers = std::min<std::size_t>(clients, 64);
    std::vector<std::thread> threads;
    for (std::size_t worker = 0; worker < workers; ++worker)
      threads.emplace_back([&, worker] {
        for (std::size_t i = worker; i < clients; i += workers) one(i);
      });
    for (std::thread& thread : threads) thread.join();
  }
  static double secondsSince(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
  }

  const std::size_t clients_ = numberFrom("VIADUCT_MEET_CLIENTS", 128);
  std::unique_ptr<RunningPlace> running_ = GetParam().start("secret", 10s);
};

// Each client publishes its name and finds two others, at the same time as all others. Then the
// server is gone for a while. Afterwards each client finds a name again.
TEST_P(MeetingCrowd, AllFindEachOtherAlsoAfterTheServerWasAway) {
  const auto away = std::chrono::seconds(numberFrom("VIADUCT_MEET_AWAY", 1));
  const auto options = running_->options();
  const std::size_t workers = std::min<std::size_t>(clients_, 64);
  std::atomic<std::size_t> failed{0};
  std::barrier together(static_cast<std::ptrdiff_t>(workers + 1));
  const auto check = [&failed](const auto& result) {
    if (result) return;
    if (failed++ == 0) ADD_FAILURE() << result.error().text();
  };
  const auto nameOf = [this](std::size_t i) { return "n" + std::to_string(i % clients_); };
  std::vector<std::thread> clients;
  for (std::size_t worker = 0; worker < workers; ++worker)
    clients.emplace_back([&, worker] {
      std::map<std::size_t, std::unique_ptr<MeetingPlace>> places;
      for (std::size_t i = worker; i < clients_; i += workers)
        places[i] = std::move(*openMeetingPlace(options));
      std::vector<std::unique_ptr<PublishedName>> entries;
      together.arrive_and_wait();
      for (const auto& [i, place] : places) {
        auto entry = place->publish(nameOf(i), "v" + std::to_string(i), kPatience);
        check(entry);
        if (entry) entries.push_back(std::move(*entry));
      }
      for (const auto& [i, place] : places) {
        check(place->find(nameOf(i + 1), kPatience, kNeverStop));
        check(place->find(nameOf(i + clients_ / 2), kPatience, kNeverStop));
      }
      together.arrive_and_wait();
      together.arrive_and_wait();  // the server is back
      for (const auto& [i, place] : places)
        check(place->find(nameOf(i + 1), kPatience, kNeverStop));
      together.arrive_and_wait();
    });
  together.arrive_and_wait();
  auto begun = Clock::now();
  together.arrive_and_wait();
  const double met = secondsSince(begun);
  const auto first = static_cast<double>(running_->requests()) / static_cast<double>(clients_);
  running_->kill();
  std::this_thread::sleep_for(away);
  running_->revive();
  begun = Clock::now();
  const auto before = running_->requests();
  together.arrive_and_wait();
  together.arrive_and_wait();
  const double back = secondsSince(begun);
  const auto again =
      static_cast<double>(running_->requests() - before) / static_cast<double>(clients_);
  std::printf(
      "%s: %zu clients met in %.2f s with %.1f requests each; after %lld s without the server all "
      "were found in %.2f s with %.1f requests each\n",
      GetParam().name.c_str(), clients_, met, first, static_cast<long long>(away.count()), back,
      again);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0U);
  // Each client needs some requests, and a waiting client asks again a few times a second.
  EXPECT_LE(first, 10 * (1 + met)) << "requests of each";
  EXPECT_LE(again, 10 * (1 + back)) << "requests of each";
}

// The clients share nothing but this process, as each has a namespace of its own. All lose the
// server at the same time.
TEST_P(MeetingCrowd, AServerThatReturnsMeetsNoHerd) {
  constexpr auto kWindow = 100ms;
  const double away = static_cast<double>(numberFrom("VIADUCT_MEET_AWAY", 3));
  const std::size_t count = std::min<std::size_t>(clients_, 1024);
  struct Client {
    std::unique_ptr<MeetingPlace> place;
    std::unique_ptr<PublishedName> entry;
  };
  std::vector<Client> clients(count);
  std::atomic<std::size_t> failed{0};
  auto options = running_->options();
  forEach(count, [&](std::size_t i) {
    auto own = options;
    own.name_space = "/client" + std::to_string(i);
    clients[i].place = std::move(*openMeetingPlace(own));
    auto entry = clients[i].place->publish("n", "v", kPatience);
    if (entry)
      clients[i].entry = std::move(*entry);
    else if (failed++ == 0)
      ADD_FAILURE() << entry.error().text();
  });
  running_->kill();
  std::this_thread::sleep_for(std::chrono::duration<double>(away));
  running_->revive();
  // Random pauses spread the clients over about this time.
  const double spread = std::min(GetParam().longest_pause, away / 3);
  const auto returned = Clock::now();
  std::uint64_t all = 0;
  double most = 0;
  for (auto then = returned; secondsSince(returned) < 2 * spread + 1;) {
    std::this_thread::sleep_for(kWindow);
    const auto before = std::exchange(all, running_->requests());
    const auto now = Clock::now();
    const double windows = std::chrono::duration<double>(now - std::exchange(then, now)) / kWindow;
    most = std::max(most, static_cast<double>(all - before) / windows);
  }
  std::printf("%s: %zu clients sent %.0f of %llu requests in the busiest 100 ms after %.0f s\n",
              GetParam().name.c_str(), count, most, static_cast<unsigned long long>(all), away);
  EXPECT_LE(most, 20 + static_cast<double>(all) * std::min(1.0, 0.6 / spread));
  forEach(count, [&](std::size_t i) {
    if (!clients[i].place->find("n", kPatience, kNeverStop)) ++failed;
    clients[i].entry.reset();
  });
  EXPECT_EQ(failed, 0U);
}

TEST_P(MeetingCrowd, AWaitingSearchEndsWithThePublication) {
  auto publisher = openMeetingPlace(running_->options()),
       seeker = openMeetingPlace(running_->options());
  ASSERT_TRUE(publisher && seeker);
  ASSERT_TRUE((*publisher)->publish("first", "", kPatience));  // connects
  std::vector<double> waits;
  for (int round = 0; round < (GetParam().slow ? 7 : 21); ++round) {
    const std::string name = "n" + std::to_string(round);
    auto found = std::async(std::launch::async, [&] {
      const auto value = (*seeker)->find(name, kPatience, kNeverStop);
      EXPECT_TRUE(value) << value.error().text();
      return Clock::now();
    });
    // The pause lets the search begin to wait at the server. Without the pause the test passes too.
    std::this_thread::sleep_for(GetParam().slow ? 1s : 30ms);
    const auto begun = Clock::now();
    const auto entry = (*publisher)->publish(name, "v", kPatience);
    ASSERT_TRUE(entry) << entry.error().text();
    waits.push_back(std::chrono::duration<double, std::milli>(found.get() - begun).count());
  }
  std::ranges::sort(waits);
  std::printf("%s: published until found: median %.2f ms, max %.2f ms\n", GetParam().name.c_str(),
              waits[waits.size() / 2], waits.back());
  EXPECT_LE(waits.front(), 50) << "ms";
}

// The process is in a PID namespace of its own, as on another host, so that nothing proves its
// death.
TEST_P(MeetingCrowd, AKilledProcessIsNotBelievedWithinTwoLeases) {
  if (!mayUnshare({"--pid", "--fork"})) GTEST_SKIP() << "skipped: no right to unshare";
  running_ = GetParam().start("secret", 2s);
  const auto options = running_->options();
  Process owner({"unshare", "--pid", "--fork", "--kill-child", kMeetingMember, options.where,
                 options.token, "owner", "2000"});
  ASSERT_EQ(owner.ask("publish n old 60000"), "ok ");
  auto seeker = openMeetingPlace(options), next = openMeetingPlace(options);
  ASSERT_TRUE(seeker && next);
  ASSERT_TRUE((*seeker)->find("n", kPatience, kNeverStop));
  owner.kill();
  const auto begun = Clock::now();
  while ((*seeker)->find("n", 300ms, kNeverStop)) EXPECT_LT(secondsSince(begun), 60);
  const double gone = secondsSince(begun);
  const auto entry = (*next)->publish("n", "new", kPatience);
  ASSERT_TRUE(entry) << entry.error().text();
  const double free = secondsSince(begun);
  std::printf("%s: killed until not believed %.2f s, until another process has the name %.2f s\n",
              GetParam().name.c_str(), gone, free);
  EXPECT_LT(Clock::now() - begun, 2 * GetParam().lease);
  EXPECT_EQ(*(*seeker)->find("n", kPatience, kNeverStop), "new");
}

INSTANTIATE_TEST_SUITE_P(Places, MeetingCrowd, ::testing::ValuesIn(placeKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace viaduct::testing
