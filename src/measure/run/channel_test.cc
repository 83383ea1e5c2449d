#include "measure/run/channel.h"

#include <gtest/gtest.h>

#include <optional>

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() : ends(*Channel::pair()) {}
  Code failure(Duration within) {
    const auto got = ends.first.receive(within, stop);
    EXPECT_FALSE(got);
    return got ? Code::kInvalid : got.error().code;
  }
  std::pair<Channel, Channel> ends;
  StopFlag stop{false};
};

TEST_F(ChannelTest, MessagesKeepTheirBounds) {
  const base::Bytes one(1, std::byte{1});
  const base::Bytes large(Channel::kMaxMessage, std::byte{2});
  ASSERT_TRUE(ends.second.send(one));
  ASSERT_TRUE(ends.second.send(large));
  EXPECT_EQ(*ends.first.receive(1s, stop), one);
  EXPECT_EQ(*ends.first.receive(1s, stop), large);
  EXPECT_FALSE(ends.second.send(base::Bytes(Channel::kMaxMessage + 1)));
  EXPECT_FALSE(ends.second.send({}));
}

TEST_F(ChannelTest, SaysWhyNothingCame) {
  EXPECT_EQ(failure(1ms), Code::kTimeout);
  stop = true;
  EXPECT_EQ(failure(10s), Code::kCancelled);
  stop = false;
  {
    const Channel gone = std::move(ends.second);
  }
  EXPECT_EQ(failure(10s), Code::kPeerLost);
  const base::Bytes one(1);
  EXPECT_EQ(ends.first.send(one).error().code, Code::kPeerLost);
}

}  // namespace
}  // namespace viaduct::measure
