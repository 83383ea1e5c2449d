#include "agent/session/connection.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <string>

#include "agent/session/session_pair.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

class ConnectionTest : public ::testing::TestWithParam<Kind> {
 protected:
  Turner turner_;
};

INSTANTIATE_TEST_SUITE_P(Over, ConnectionTest, ::testing::Values(Kind::kTcp, Kind::kUnix),
                         [](const auto& way) { return way.param == Kind::kTcp ? "Tcp" : "Unix"; });

TEST_P(ConnectionTest, BothEndsMeetAndFramesPassBothWays) {
  SessionPair pair(GetParam(), turner_);
  pair.at_listener.verdict = std::uint64_t{42};
  ASSERT_TRUE(turner_.run([&] { return pair.ready(); }));
  EXPECT_EQ(*pair.at_dialer.epoch, 42U);
  EXPECT_EQ(*pair.at_listener.epoch, 42U);
  EXPECT_EQ(pair.at_dialer.hello, helloOf("listener"));
  EXPECT_EQ(pair.at_listener.hello, helloOf("dialer"));
  EXPECT_EQ(pair.dialer->deriveKey("x"), pair.listener->deriveKey("x"));
  EXPECT_NE(pair.dialer->deriveKey("x"), pair.dialer->deriveKey("y"));

  ASSERT_TRUE(pair.dialer->send(FrameType::kNote, bytesOf("there")));
  ASSERT_TRUE(pair.dialer->sendParts(FrameType::kBackend, bytesOf("one"), bytesOf("two")));
  ASSERT_TRUE(pair.listener->send(FrameType::kBye, {}));
  ASSERT_TRUE(turner_.run(
      [&] { return pair.at_listener.frames.size() == 2 && pair.at_dialer.frames.size() == 1; }));
  EXPECT_EQ(pair.at_listener.frames, (std::vector<std::string>{"there", "onetwo"}));
  EXPECT_EQ(pair.at_listener.types, (std::vector{FrameType::kNote, FrameType::kBackend}));
  EXPECT_EQ(pair.at_dialer.types, (std::vector{FrameType::kBye}));
}

}  // namespace
}  // namespace viaduct::agent
