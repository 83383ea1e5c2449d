#include "base/attempt.h"

#include <gtest/gtest.h>

#include <thread>

namespace viaduct::base {
namespace {

struct Counter final : Watcher {
  void changed() override { ++changes; }
  int changes = 0;
};

TEST(Attempt, AWatcherIsToldOnceOfTheNextChange) {
  const auto counter = std::make_shared<Counter>();
  Watchers watchers;
  watchers.tell();
  {
    Attempt attempt(counter);
    EXPECT_FALSE(attempt.wouldBlock());
    EXPECT_TRUE(Attempt::refuses(watchers));
    EXPECT_TRUE(attempt.wouldBlock());
  }
  EXPECT_FALSE(Attempt::refuses(watchers));
  watchers.tell();
  watchers.tell();
  EXPECT_EQ(counter->changes, 1);
}

TEST(Attempt, IsOfItsThread) {
  Watchers watchers;
  const Attempt attempt(std::make_shared<Counter>());
  bool refuses = true;
  std::thread([&] { refuses = Attempt::refuses(watchers); }).join();
  EXPECT_FALSE(refuses);
}

TEST(Watchers, DropThoseThatAreGone) {
  Watchers watchers;
  const auto kept = std::make_shared<Counter>();
  watchers.add(kept);
  std::weak_ptr<Watcher> last;
  for (int i = 0; i < 1000; ++i) {
    const auto gone = std::make_shared<Counter>();
    watchers.add(gone);
    last = gone;
  }
  watchers.tell();
  EXPECT_EQ(kept->changes, 1);
  EXPECT_TRUE(last.expired());
}

}  // namespace
}  // namespace viaduct::base
