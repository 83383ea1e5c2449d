#include "move/fabric_message.h"

#include <gtest/gtest.h>

namespace viaduct::move {
namespace {

Bytes some(std::size_t bytes) { return Bytes(bytes, std::byte{7}); }

TEST(FabricMessage, EveryKindIsDecodedAsItWasEncoded) {
  const auto open = decode(encode(OpenChannel{true, 3, 9, some(200), {0x1234, some(12)}}));
  ASSERT_TRUE(open && std::holds_alternative<OpenChannel>(*open));
  const OpenChannel& opened = std::get<OpenChannel>(*open);
  EXPECT_TRUE(opened.answer && opened.channel == 3 && opened.life == 9);
  EXPECT_EQ(opened.address, some(200));
  EXPECT_EQ(opened.probe, (ProbeTarget{0x1234, some(12)}));

  const auto shut = decode(encode(ShutChannel{1, 2, ShutReason::kFence, "why"}));
  ASSERT_TRUE(shut && std::holds_alternative<ShutChannel>(*shut));
  EXPECT_EQ(std::get<ShutChannel>(*shut).reason, ShutReason::kFence);
  EXPECT_EQ(std::get<ShutChannel>(*shut).why, "why");

  const auto ask = decode(encode(KeyRequest{5, 6}));
  ASSERT_TRUE(ask && std::holds_alternative<KeyRequest>(*ask));
  EXPECT_EQ(std::get<KeyRequest>(*ask).slot, 5U);
  EXPECT_EQ(std::get<KeyRequest>(*ask).generation, 6U);

  const auto key = decode(encode(KeyAnswer{5, 6, {some(12), some(13)}}));
  ASSERT_TRUE(key && std::holds_alternative<KeyAnswer>(*key));
  EXPECT_EQ(std::get<KeyAnswer>(*key).keys, (std::vector<Bytes>{some(12), some(13)}));

  const auto ping = decode(encode(PingChannel{true, 1, 2}));
  ASSERT_TRUE(ping && std::holds_alternative<PingChannel>(*ping));
  EXPECT_TRUE(std::get<PingChannel>(*ping).answer);

  for (const bool awake : {true, false}) {
    const auto polling = decode(encode(PollingNotice{awake, 1, 2}));
    ASSERT_TRUE(polling && std::holds_alternative<PollingNotice>(*polling));
    const PollingNotice& told = std::get<PollingNotice>(*polling);
    EXPECT_TRUE(told.awake == awake && told.channel == 1 && told.life == 2);
  }

  EXPECT_EQ(decodeGreeting(encodeGreeting({4, "kind"}))->rails, 4U);
  EXPECT_EQ(decodeGreeting(encodeGreeting({4, "kind"}))->kind, "kind");
  EXPECT_EQ(*decodePinKey(encodePinKey(77)), 77U);
}

TEST(FabricMessage, RefusesTruncatedAndTooLongMessages) {
  for (const FabricMessage& whole :
       {FabricMessage(OpenChannel{false, 0, 1, some(20), {8, some(9)}}),
        FabricMessage(ShutChannel{0, 1, {}, "x"}), FabricMessage(KeyRequest{1, 2}),
        FabricMessage(KeyAnswer{1, 2, {some(3)}}), FabricMessage(PingChannel{}),
        FabricMessage(PollingNotice{})}) {
    Bytes bytes = encode(whole);
    ASSERT_TRUE(decode(bytes));
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode(std::span(bytes).first(length))) << bytes.size() << " " << length;
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(decode(bytes));
    bytes.pop_back();
    bytes[0] = std::byte{9};
    EXPECT_FALSE(decode(bytes)) << "another version";
  }
}

TEST(FabricMessage, RefusesImpossibleValues) {
  EXPECT_FALSE(decode(encode(OpenChannel{false, kMaxRails, 1, some(20), {8, some(9)}})));
  EXPECT_FALSE(decode(encode(OpenChannel{false, 0, 1, {}, {8, some(9)}})));
  EXPECT_FALSE(decode(encode(OpenChannel{false, 0, 1, some(kMaxAddress + 1), {8, some(9)}})));
  EXPECT_FALSE(decode(encode(OpenChannel{false, 0, 1, some(20), {8, some(kMaxKey + 1)}})));
  EXPECT_FALSE(decode(encode(ShutChannel{kMaxRails, 1, {}, ""})));
  EXPECT_FALSE(decode(encode(ShutChannel{0, 1, static_cast<ShutReason>(3), ""})));
  EXPECT_FALSE(decode(encode(KeyAnswer{1, 2, std::vector<Bytes>(kMaxRails + 1, some(1))})));
  EXPECT_FALSE(decode(encode(KeyAnswer{1, 2, {Bytes{}}})));
  EXPECT_FALSE(decode(encode(PingChannel{true, kMaxRails, 1})));
  EXPECT_FALSE(decode(encode(PollingNotice{true, kMaxRails, 1})));
  EXPECT_FALSE(decodeGreeting(encodeGreeting({0, ""})));
  EXPECT_FALSE(decodeGreeting(encodeGreeting({kMaxRails + 1, ""})));
  EXPECT_FALSE(decodeGreeting(encodeGreeting({1, std::string(257, 'x')})));
  EXPECT_FALSE(decodeGreeting({}));
  EXPECT_FALSE(decodePinKey(encodePinKey(0)));
  EXPECT_FALSE(decodePinKey({}));
}

}  // namespace
}  // namespace viaduct::move
