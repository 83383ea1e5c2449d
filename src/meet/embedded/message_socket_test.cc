#include "meet/embedded/message_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

namespace viaduct::meet::embedded {
namespace {

class MessageSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> both{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()), 0);
    socket_.emplace(base::Fd(both[0]), kMaxUnproven);
    silent_.reset(both[1]);
  }
  // Returns how many messages of that size the socket accepts while the other end does not read.
  std::size_t takes(Type type, std::size_t bytes) {
    const PacketPtr packet = makePacket(type, Bytes(bytes));
    std::size_t count = 0;
    while (socket_->send(packet)) ++count;
    error_ = socket_->send(packet).error();
    return count;
  }

  std::optional<MessageSocket> socket_;
  base::Fd silent_;
  Error error_;
};

TEST_F(MessageSocketTest, LimitsTheBytesThatWaitForAnEndThatDoesNotRead) {
  const std::size_t fit = takes(Type::kAnswer, kMaxValueBytes);
  EXPECT_GE(fit, 256U);
  EXPECT_LT(fit, 300U) << "what the socket holds besides";
  EXPECT_EQ(error_.code, Code::kBusy);
  EXPECT_NE(error_.detail.find("67108864"), std::string::npos) << error_.detail;
}

// All members share one payload of values, which does not count against one member's byte limit.
TEST_F(MessageSocketTest, PayloadsThatAllMembersShareDoNotCount) {
  const PacketPtr packet = makePacket(Type::kValues, Bytes(kMaxValueBytes));
  for (int i = 0; i < 4096; ++i) ASSERT_TRUE(socket_->send(packet)) << i;
}

}  // namespace
}  // namespace viaduct::meet::embedded
