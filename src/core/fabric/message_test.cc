#include "core/fabric/message.h"

#include <gtest/gtest.h>

namespace viaduct::core::fabric {
namespace {

Bytes some(std::size_t bytes) { return Bytes(bytes, std::byte{7}); }

TEST(FabricMessage, EveryKindComesBackAsItWas) {
  const auto open = decode(encode(Open{true, 3, 9, some(200), {0x1234, some(12)}}));
  ASSERT_TRUE(open && std::holds_alternative<Open>(*open));
  const Open& opened = std::get<Open>(*open);
  EXPECT_TRUE(opened.answer && opened.channel == 3 && opened.life == 9);
  EXPECT_EQ(opened.address, some(200));
  EXPECT_EQ(opened.probe, (Probe{0x1234, some(12)}));

  const auto shut = decode(encode(Shut{1, 2, Shut::Reason::kFence, "why"}));
  ASSERT_TRUE(shut && std::holds_alternative<Shut>(*shut));
  EXPECT_EQ(std::get<Shut>(*shut).reason, Shut::Reason::kFence);
  EXPECT_EQ(std::get<Shut>(*shut).why, "why");

  const auto ask = decode(encode(Ask{5, 6}));
  ASSERT_TRUE(ask && std::holds_alternative<Ask>(*ask));
  EXPECT_EQ(std::get<Ask>(*ask).slot, 5U);
  EXPECT_EQ(std::get<Ask>(*ask).generation, 6U);

  const auto key = decode(encode(Key{5, 6, {some(12), some(13)}}));
  ASSERT_TRUE(key && std::holds_alternative<Key>(*key));
  EXPECT_EQ(std::get<Key>(*key).keys, (std::vector<Bytes>{some(12), some(13)}));

  const auto ping = decode(encode(Ping{true, 1, 2}));
  ASSERT_TRUE(ping && std::holds_alternative<Ping>(*ping));
  EXPECT_TRUE(std::get<Ping>(*ping).answer);

  for (const bool awake : {true, false}) {
    const auto stir = decode(encode(Stir{awake, 1, 2}));
    ASSERT_TRUE(stir && std::holds_alternative<Stir>(*stir));
    const Stir& told = std::get<Stir>(*stir);
    EXPECT_TRUE(told.awake == awake && told.channel == 1 && told.life == 2);
  }

  EXPECT_EQ(decodeGreeting(encodeGreeting({4, "kind"}))->rails, 4U);
  EXPECT_EQ(decodeGreeting(encodeGreeting({4, "kind"}))->kind, "kind");
  EXPECT_EQ(*decodePinKey(encodePinKey(77)), 77U);
}

TEST(FabricMessage, WhatIsCutShortOrTooLongIsRefused) {
  for (const Message& whole :
       {Message(Open{false, 0, 1, some(20), {8, some(9)}}), Message(Shut{0, 1, {}, "x"}),
        Message(Ask{1, 2}), Message(Key{1, 2, {some(3)}}), Message(Ping{}), Message(Stir{})}) {
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

TEST(FabricMessage, WhatCannotBeIsRefused) {
  EXPECT_FALSE(decode(encode(Open{false, kMaxRails, 1, some(20), {8, some(9)}})));
  EXPECT_FALSE(decode(encode(Open{false, 0, 1, {}, {8, some(9)}})));
  EXPECT_FALSE(decode(encode(Open{false, 0, 1, some(kMaxAddress + 1), {8, some(9)}})));
  EXPECT_FALSE(decode(encode(Open{false, 0, 1, some(20), {8, some(kMaxKey + 1)}})));
  EXPECT_FALSE(decode(encode(Shut{kMaxRails, 1, {}, ""})));
  EXPECT_FALSE(decode(encode(Shut{0, 1, static_cast<Shut::Reason>(3), ""})));
  EXPECT_FALSE(decode(encode(Key{1, 2, std::vector<Bytes>(kMaxRails + 1, some(1))})));
  EXPECT_FALSE(decode(encode(Key{1, 2, {Bytes{}}})));
  EXPECT_FALSE(decode(encode(Ping{true, kMaxRails, 1})));
  EXPECT_FALSE(decode(encode(Stir{true, kMaxRails, 1})));
  EXPECT_FALSE(decodeGreeting(encodeGreeting({0, ""})));
  EXPECT_FALSE(decodeGreeting(encodeGreeting({kMaxRails + 1, ""})));
  EXPECT_FALSE(decodeGreeting(encodeGreeting({1, std::string(257, 'x')})));
  EXPECT_FALSE(decodeGreeting({}));
  EXPECT_FALSE(decodePinKey(encodePinKey(0)));
  EXPECT_FALSE(decodePinKey({}));
}

}  // namespace
}  // namespace viaduct::core::fabric
