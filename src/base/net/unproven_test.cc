#include "base/net/unproven.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/net/address.h"

namespace viaduct::base {
namespace {

using namespace std::chrono_literals;

// Connections over loopback, each from a source address that the test chooses.
class UnprovenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto any = *resolve(*parseHostPort("127.0.0.1:0"));
    listening_ = *streamSocket(AF_INET);
    ASSERT_EQ(::bind(listening_.get(), any[0].get(), any[0].size), 0);
    ASSERT_EQ(::listen(listening_.get(), 64), 0);
  }
  // Adds a connection that comes `after` the first one. If `speaks`, it has sent a byte before the
  // accept.
  void come(const std::string& name, const std::string& from, Duration after, bool speaks = false) {
    const auto source = *resolve(*parseHostPort(from + ":0"));
    const auto to = *localAddress(listening_.get());
    const Fd caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(caller.get(), source[0].get(), source[0].size), 0);
    ASSERT_EQ(::connect(caller.get(), to.get(), to.size), 0);
    if (speaks) {
      ASSERT_EQ(::send(caller.get(), "x", 1, MSG_NOSIGNAL), 1);
    }
    const Fd& socket =
        sockets_.emplace_back(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    places_[name] = unproven_.admit(socket.get(), start_ + after);
    places_[name].watch([this, name] { return spoken_.contains(name); },
                        [this, name] {
                          dropped_.push_back(name);
                          places_.erase(name);
                        });
  }
  Clock::time_point dropAt(Duration after) { return unproven_.dropOne(start_ + after); }

  const Clock::time_point start_ = Clock::now();
  Fd listening_;
  Unproven unproven_{4};
  std::vector<Fd> sockets_;
  std::set<std::string> spoken_;
  std::map<std::string, Unproven::Place> places_;
  std::vector<std::string> dropped_;
};

TEST_F(UnprovenTest, DropsTheOldestOfTheSourceThatHasTheMost) {
  come("peer", "127.0.0.1", 0ms);
  come("flood 1", "127.0.0.2", 1ms);
  come("flood 2", "127.0.0.2", 2ms);
  EXPECT_FALSE(unproven_.full());
  come("flood 3", "127.0.0.2", 3ms);
  EXPECT_TRUE(unproven_.full());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(dropAt(1s), start_ + 1s);
  EXPECT_EQ(dropped_, (std::vector<std::string>{"flood 1", "flood 2", "peer", "flood 3"}));
  EXPECT_EQ(dropAt(1s), Clock::time_point::max()) << "nobody is left";
}

TEST_F(UnprovenTest, EachHasItsTimeToProveItself) {
  come("one", "127.0.0.1", 0ms);
  const auto when = dropAt(1ms);
  EXPECT_GT(when, start_ + 1ms);
  EXPECT_TRUE(dropped_.empty());
  EXPECT_EQ(unproven_.dropOne(when), when);
  EXPECT_EQ(dropped_.size(), 1U);
}

// Bytes count, whether they are unread in the socket or read by the connection's owner.
TEST_F(UnprovenTest, AConnectionThatHasSentBytesHasMoreTime) {
  come("unread", "127.0.0.1", 0ms, true);
  come("heard", "127.0.0.1", 1ms);
  come("silent", "127.0.0.1", 2ms);
  spoken_ = {"heard"};
  EXPECT_EQ(dropAt(100ms), start_ + 100ms);
  EXPECT_EQ(dropped_, std::vector<std::string>{"silent"});
  EXPECT_GT(dropAt(100ms), start_ + 400ms);
  EXPECT_EQ(dropAt(1s), start_ + 1s);
  EXPECT_EQ(dropped_.back(), "unread");
}

TEST_F(UnprovenTest, AProvenConnectionIsNeverDropped) {
  come("proven", "127.0.0.1", 0ms);
  come("stranger", "127.0.0.1", 1ms);
  places_.at("proven").leave();
  EXPECT_EQ(unproven_.count(), 1U);
  while (dropAt(1s) == start_ + 1s) continue;
  EXPECT_EQ(dropped_, std::vector<std::string>{"stranger"});
}

TEST_F(UnprovenTest, APlaceThatMovesIsOnePlace) {
  come("one", "127.0.0.1", 0ms);
  Unproven::Place place = std::move(places_.at("one"));
  Unproven::Place again;
  again = std::move(place);
  EXPECT_EQ(unproven_.count(), 1U);
  again = {};
  EXPECT_EQ(unproven_.count(), 0U);
}

TEST(UnprovenRoom, IsAShareOfTheDescriptors) {
  const std::size_t room = Unproven::shareOfDescriptors();
  EXPECT_GE(room, 16U);
  EXPECT_LE(room, 1024U);
}

}  // namespace
}  // namespace viaduct::base
