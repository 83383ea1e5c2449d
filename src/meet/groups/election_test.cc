// Tests how members find their elected server, at a place in memory.
#include "meet/groups/election.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "meet/groups/server_record.h"

namespace viaduct::meet::groups {
namespace {

using namespace std::chrono_literals;

class PlaceInMemory final : public MeetingPlace {
 public:
  Result<std::unique_ptr<PublishedName>> publish(const std::string&, const std::string&,
                                                 Deadline) override {
    return Error{.code = Code::kUnsupported};
  }
  Result<std::string> find(const std::string&, Deadline, const StopFlag&) override {
    return Error{.code = Code::kUnsupported};
  }
  Result<std::unique_ptr<PublishedName>> claim(const Claim& claim, const meet::Wait&) override {
    const std::lock_guard held(mutex_);
    if (!values_.emplace(claim.key, claim.value).second) return std::unique_ptr<PublishedName>();
    changed_.notify_all();
    return std::unique_ptr<PublishedName>(std::make_unique<Key>(*this, claim.key));
  }
  Result<Held> await(const std::string& key, const Enough& enough,
                     const meet::Wait& wait) override {
    std::unique_lock held(mutex_);
    ++waits_;
    changed_.notify_all();
    const auto value = [&] {
      const auto found = values_.find(key);
      return found == values_.end() ? Held() : Held(found->second);
    };
    if (changed_.wait_until(held, wait.until, [&] { return enough(value()); })) return value();
    return wait.timedOut();
  }
  void set(const std::string& key, const std::string& value) {
    const std::lock_guard held(mutex_);
    values_[key] = value;
  }
  void erase(const std::string& key) {
    const std::lock_guard held(mutex_);
    values_.erase(key);
    changed_.notify_all();
  }
  // Returns once a member waits for the key for that many times.
  void untilWaits(int times) {
    std::unique_lock held(mutex_);
    EXPECT_TRUE(changed_.wait_for(held, 20s, [&] { return waits_ >= times; }));
  }

 private:
  class Key final : public PublishedName {
   public:
    Key(PlaceInMemory& place, std::string key) : place_(place), key_(std::move(key)) {}
    ~Key() override { place_.erase(key_); }
    Key(const Key&) = delete;
    Key& operator=(const Key&) = delete;

   private:
    PlaceInMemory& place_;
    const std::string key_;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  int waits_ = 0;
};

// The system has given the port of a dead server to another program.
TEST(Election, AnotherProgramAtTheAddressOfADeadServerIsNotBelieved) {
  const auto foreign = *EmbeddedServer::start({.token = "of another group"});
  auto place = std::make_unique<PlaceInMemory>();
  PlaceInMemory& at = *place;
  const std::string key = "group/g/head";
  at.set(key, encodeRecord(ServerRecord{.name = "dead", .addresses = foreign->addresses()}));
  const auto electorate =
      std::make_shared<Electorate>(std::move(place), PlaceOptions{.token = "ours"}, "a place");
  const std::jthread lease([&] {
    at.untilWaits(2);  // the first one reads the key, and the second one follows the denial
    at.erase(key);
  });
  const StopFlag go_on{false};
  const auto group = joinElected(electorate, {.group = "g", .size = 1, .rank = 0, .name = "m0"},
                                 Clock::now() + 20s, go_on);
  ASSERT_TRUE(group) << group.error().text();
  EXPECT_EQ((*group)->roster().members.at(0).name, "m0");
}

}  // namespace
}  // namespace viaduct::meet::groups
