#include "meet/groups/group_messages.h"

#include <gtest/gtest.h>

namespace viaduct::meet::groups {
namespace {

FormedMessage roundTrip(const FormedMessage& message) {
  auto out = base::decode<FormedMessage>(base::encode(message));
  EXPECT_TRUE(out) << out.error().text();
  return out ? *std::move(out) : FormedMessage{};
}

TEST(FormedMessage, DecodesToTheEncodedRoster) {
  const std::string longest(kMaxNameBytes, 'n'), about(kMaxAboutBytes, 'a');
  const FormedMessage message{
      .epoch = 7,
      .members = {{0, "node1:4711", about},
                  {1, "node1:4712", about},
                  {2, "node1:4712", "b"},
                  {3, "", ""},
                  {4, longest, about + ""},
                  {5, longest, about.substr(1)},
                  {6, std::string("\0\0", 2), std::string(300, 'a') + "x"}}};
  const FormedMessage back = roundTrip(message);
  EXPECT_EQ(back.epoch, 7U);
  EXPECT_EQ(back.members, message.members);
  EXPECT_TRUE(roundTrip({.epoch = 1}).members.empty());
}

TEST(FormedMessage, CommonBeginningsOfTextsAreSentOnce) {
  FormedMessage message;
  for (std::uint32_t rank = 0; rank < 100; ++rank)
    message.members.push_back({rank, "a-long-name-of-a-host:" + std::to_string(rank), ""});
  EXPECT_LT(base::encode(message).size(), 1000U);
}

TEST(FormedMessage, TruncatedBytesAndTextsBeyondTheLimitsAreRefused) {
  const Bytes good =
      base::encode(FormedMessage{.epoch = 7, .members = {{0, "ab", "x"}, {1, "ac", "x"}}});
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_FALSE(base::decode<FormedMessage>(ByteSpan(good).first(bytes))) << bytes;
  const auto first = [](std::uint8_t common, std::uint16_t rest) {
    base::Writer out;
    out.put(std::uint64_t{7}).put(std::uint32_t{1}).put(common).put(rest);
    return out.raw(Bytes(rest)).put(std::uint8_t{0}).put(std::uint16_t{0}).take();
  };
  EXPECT_TRUE(base::decode<FormedMessage>(first(0, kMaxNameBytes)));
  EXPECT_FALSE(base::decode<FormedMessage>(first(0, kMaxNameBytes + 1)));
  EXPECT_FALSE(base::decode<FormedMessage>(first(1, 0))) << "in common with nobody";
}

}  // namespace
}  // namespace viaduct::meet::groups
