// Tests the encoding of frames, hellos and addresses: valid ones are read back, and invalid ones
// are refused.
#include "backends/tcp/wire.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "backends/tcp/fuzz_stage_testing.h"
#include "backends/tcp/hello.h"
#include "backends/tcp/tcp_address.h"
#include "base/bytes.h"
#include "base/random.h"

namespace viaduct::tcp {
namespace {

std::vector<std::byte> frame(const FrameHead& head, const std::vector<FrameEntry>& entries = {},
                             std::size_t payload = 0) {
  std::vector<std::byte> out(kHeadBytes + entries.size() * kEntryBytes + payload, std::byte{7});
  encodeHead(head, out.data());
  for (std::size_t i = 0; i < entries.size(); ++i)
    encodeEntry(entries[i], out.data() + kHeadBytes + i * kEntryBytes);
  return out;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte one : bytes) out += fmt::format("{:02x}", one);
  return out;
}

std::string refusalOf(const FrameHead& head) {
  std::array<std::byte, kHeadBytes> bytes{};
  encodeHead(head, bytes.data());
  FrameHead decoded;
  const std::string wrong(decodeHead(bytes, decoded));
  if (wrong.empty()) {
    EXPECT_EQ(decoded, head);
  }
  return wrong;
}

TEST(TcpWire, HeadsAreDecodedAsTheyWereEncoded) {
  EXPECT_EQ(refusalOf({DataFrameType::kWrite, 3, FrameStatus::kOk, 500, 1ULL << 60U}), "");
  EXPECT_EQ(refusalOf({DataFrameType::kReadRequest, kMaxEntries, FrameStatus::kOk, 0, 1}), "");
  EXPECT_EQ(refusalOf({DataFrameType::kReadData, 0, FrameStatus::kOk, kMaxFrameBytes, 1}), "");
  EXPECT_EQ(refusalOf({DataFrameType::kFail, 0, FrameStatus::kDenied, 0, 9}), "");
  EXPECT_EQ(refusalOf({DataFrameType::kCancel, 0, FrameStatus::kOk, 0, 9}), "");
}

TEST(TcpWire, InvalidHeadsAreRefused) {
  using enum DataFrameType;
  EXPECT_NE(refusalOf({kWrite, 0, FrameStatus::kOk, 5, 0}), "");
  EXPECT_NE(refusalOf({kWrite, 1, FrameStatus::kOk, 0, 0}), "");
  EXPECT_NE(refusalOf({kWrite, kMaxEntries + 1, FrameStatus::kOk, 5, 0}), "");
  EXPECT_NE(refusalOf({kWrite, 1, FrameStatus::kOk, kMaxFrameBytes + 1, 0}), "");
  EXPECT_NE(refusalOf({kReadRequest, 1, FrameStatus::kOk, 1, 0}), "");
  EXPECT_NE(refusalOf({kReadData, 1, FrameStatus::kOk, 1, 0}), "");
  EXPECT_NE(refusalOf({kAck, 0, FrameStatus::kOk, 1, 0}), "");
  EXPECT_NE(refusalOf({kAck, 1, FrameStatus::kOk, 0, 0}), "");
  EXPECT_NE(refusalOf({static_cast<DataFrameType>(0), 0, FrameStatus::kOk, 0, 0}), "");
  EXPECT_NE(refusalOf({static_cast<DataFrameType>(7), 0, FrameStatus::kOk, 0, 0}), "");
  EXPECT_NE(refusalOf({kFail, 0, static_cast<FrameStatus>(3), 0, 0}), "");
}

TEST(TcpWire, EntriesHaveToAddUp) {
  const auto check = [](const FrameHead& head, const std::vector<FrameEntry>& entries) {
    const auto bytes = frame(head, entries);
    return std::string(checkEntries(head, std::span(bytes).subspan(kHeadBytes)));
  };
  const FrameHead two{DataFrameType::kWrite, 2, FrameStatus::kOk, 30, 0};
  EXPECT_EQ(check(two, {{1, 10, 0, 1}, {1, 20, 0, 1}}), "");
  EXPECT_NE(check(two, {{1, 10, 0, 1}, {1, 21, 0, 1}}), "");
  EXPECT_NE(check(two, {{1, 30, 0, 1}, {1, 0, 0, 1}}), "");
  const FrameHead ask{DataFrameType::kReadRequest, 2, FrameStatus::kOk, 0, 0};
  EXPECT_EQ(check(ask, {{1, 10, 0, 1}, {1, 20, 0, 1}}), "");
  EXPECT_NE(check(ask, {{1, UINT32_MAX, 0, 1}, {1, UINT32_MAX, 0, 1}}), "");
}

TEST(TcpWire, HellosProveTheKey) {
  const LinkKey key{1, 2, 3};
  const SocketHello hello{.link = linkId(key), .epoch = 4, .index = 1, .count = 3};
  auto bytes = encodeHello(hello, key);
  EXPECT_EQ(decodeHello(bytes), hello);
  EXPECT_TRUE(helloIsGenuine(bytes, key));
  EXPECT_FALSE(helloIsGenuine(bytes, LinkKey{1, 2, 4}));
  for (std::byte& b : bytes) {
    b ^= std::byte{1};
    EXPECT_FALSE(helloIsGenuine(bytes, key));
    b ^= std::byte{1};
  }
  auto welcome = encodeWelcome(hello, key);
  EXPECT_TRUE(welcomeIsGenuine(welcome, hello, key));
  EXPECT_FALSE(welcomeIsGenuine(welcome, hello, LinkKey{}));
  SocketHello other = hello;
  other.index = 2;
  EXPECT_FALSE(welcomeIsGenuine(welcome, other, key));
  welcome[8] ^= std::byte{3};  // the index, which is not encrypted
  EXPECT_FALSE(welcomeIsGenuine(welcome, other, key));
}

// Computed with Python's hmac from the description in NOTES.md.
TEST(TcpWire, AHelloAndAWelcomeHaveTheseBytes) {
  LinkKey key{};
  std::iota(key.begin(), key.end(), std::uint8_t{0});
  const SocketHello hello{.link = linkId(key), .epoch = 7, .index = 1, .count = 3, .life = 2};
  EXPECT_EQ(hex(encodeHello(hello, key)),
            "56444831010000006b8c37b6c3b09cfe1bba4b6e58c4161b070000000000000001000000030000000200"
            "0000110a1c139b7b6d1f11f877fa2716f8bc977b6e904bc77010b3a71982074dbb6e");
  EXPECT_EQ(hex(encodeWelcome(hello, key)),
            "56445731010000000100000000000000d7d236f68ca2e6e359aeff2a76a961dd4d09afe39b124afffca9"
            "372ea8e24dd4");
}

TEST(TcpWire, HellosOfImpossibleShapeAreRefused) {
  const LinkKey key{};
  EXPECT_FALSE(decodeHello(encodeHello({.index = 1, .count = 1}, key)));
  EXPECT_FALSE(decodeHello(encodeHello({.index = 0, .count = 0}, key)));
  EXPECT_FALSE(decodeHello(encodeHello({.index = 0, .count = kMaxSockets + 1}, key)));
  EXPECT_FALSE(decodeHello(std::array<std::byte, kHelloBytes>{}));
}

TEST(TcpWire, AddressListsAreReadBackOrRefused) {
  const auto here = listenAddresses("127.0.0.1:0");
  ASSERT_TRUE(here);
  const std::vector list{here->front().withPort(80), here->front().withPort(81)};
  auto bytes = encodeAddress({list, {.wish = Privacy::kEncrypted, .fast_aes = true}});
  const auto back = decodeAddress(bytes);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->addresses.size(), 2U);
  EXPECT_EQ(back->addresses[1].text(), "127.0.0.1:81");
  EXPECT_EQ(back->offer.wish, Privacy::kEncrypted);
  EXPECT_TRUE(back->offer.fast_aes);
  auto older = bytes;  // without the two bytes of the offer
  older[0] = std::byte{1};
  older.resize(older.size() - 2);
  const auto refused = decodeAddress(older);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("of another release"), std::string::npos);
  EXPECT_EQ(refused.error().remedy, "install the same release at both ends");
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decodeAddress(bytes));
  for (std::size_t length = 0; length + 1 < bytes.size(); ++length)
    EXPECT_FALSE(decodeAddress(std::span(bytes).first(length)));
}

// Frames that are well-formed, but not allowed in this state of the socket.
class TcpPeerSays : public ::testing::Test {
 protected:
  void refuses(const std::vector<std::byte>& bytes) {
    EXPECT_NE(stage_.give(bytes), "");
    EXPECT_TRUE(stage_.intact());
  }
  FuzzStage stage_;
};

TEST_F(TcpPeerSays, AcksOfUnsentWrites) { refuses(frame({.sequence = 2})); }
TEST_F(TcpPeerSays, ARefusalOfAnUnsentWrite) {
  refuses(frame({.type = DataFrameType::kFail, .status = FrameStatus::kDenied, .sequence = 1}));
}
TEST_F(TcpPeerSays, UnrequestedData) {
  refuses(frame({.type = DataFrameType::kReadData, .payload = 164, .sequence = 1}, {}, 164));
}
TEST_F(TcpPeerSays, DataOfAnotherLength) {
  refuses(frame({.type = DataFrameType::kReadData, .payload = 163, .sequence = 0}, {}, 163));
}
TEST_F(TcpPeerSays, AWriteOutOfOrder) {
  refuses(frame({DataFrameType::kWrite, 1, FrameStatus::kOk, 8, 1},
                {{stage_.at(FuzzStage::kBytes), 8, 0, 1}}, 8));
}
TEST_F(TcpPeerSays, ACancelOfAnUnknownRequest) {
  refuses(frame({.type = DataFrameType::kCancel, .sequence = 0}));
}
TEST_F(TcpPeerSays, MoreRequestsThanAllowed) {
  for (std::uint64_t i = 0; i < kMaxRequests; ++i)
    EXPECT_EQ(stage_.give(frame({DataFrameType::kReadRequest, 1, FrameStatus::kOk, 0, i},
                                {{stage_.at(FuzzStage::kBytes), 8, 0, 1}})),
              "");
  refuses(frame({DataFrameType::kReadRequest, 1, FrameStatus::kOk, 0, kMaxRequests},
                {{stage_.at(FuzzStage::kBytes), 8, 0, 1}}));
}
TEST_F(TcpPeerSays, MoreWritesThanAllowed) {
  for (std::uint64_t i = 0; i < kMaxUnacked; ++i)
    ASSERT_EQ(stage_.give(frame({DataFrameType::kWrite, 1, FrameStatus::kOk, 8, i},
                                {{stage_.at(FuzzStage::kBytes), 8, 0, 1}}, 8)),
              "");
  refuses(frame({DataFrameType::kWrite, 1, FrameStatus::kOk, 8, kMaxUnacked},
                {{stage_.at(FuzzStage::kBytes), 8, 0, 1}}, 8));
}

// Ranges that overlap a pin, but are not inside.
TEST_F(TcpPeerSays, WritesBeyondThePinAreRefusedAndHarmless) {
  const std::uint64_t pin = stage_.at(FuzzStage::kBytes);
  const std::vector<FrameEntry> wrong{{pin - 1, 8, 0, 1},
                                      {pin + FuzzStage::kBytes - 7, 8, 0, 1},
                                      {pin, FuzzStage::kBytes + 1, 0, 1},
                                      {UINT64_MAX - 3, 8, 0, 1},
                                      {pin, 8, 1, 1},
                                      {pin, 8, UINT32_MAX, 1},
                                      {pin, 8, 0, 2}};
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    // A valid entry of the same frame is not stored either.
    const std::vector<FrameEntry> entries{{pin, 8, 0, 1}, wrong[i]};
    const FrameHead head{DataFrameType::kWrite, 2, FrameStatus::kOk, 8 + wrong[i].bytes, i};
    stage_.take();
    EXPECT_EQ(stage_.give(frame(head, entries, head.payload)), "");
    EXPECT_TRUE(stage_.intact());
    FrameHead said;
    const auto answer = stage_.take();
    ASSERT_EQ(answer.size(), 2 * kHeadBytes);
    EXPECT_EQ(decodeHead(std::span(answer).first<kHeadBytes>(), said), "");
    EXPECT_EQ(said, (FrameHead{DataFrameType::kFail, 0, FrameStatus::kDenied, 0, i}));
    EXPECT_EQ(decodeHead(std::span(answer).last<kHeadBytes>(), said), "");
    EXPECT_EQ(said, (FrameHead{DataFrameType::kAck, 0, FrameStatus::kOk, 0, i + 1}));
  }
}

// Valid frames with seeded random damage. Whatever they become, they change no memory outside the
// pin.
TEST(TcpWire, MutatedConversationsAreHarmless) {
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    base::Random random(seed);
    FuzzStage stage;
    std::vector<std::byte> talk;
    const auto say = [&](const std::vector<std::byte>& bytes) {
      talk.insert(talk.end(), bytes.begin(), bytes.end());
    };
    const std::uint64_t pin = stage.at(FuzzStage::kBytes);
    say(frame({DataFrameType::kWrite, 2, FrameStatus::kOk, 300, 0},
              {{pin, 200, 0, 1}, {pin + 900, 100, 0, 1}}, 300));
    say(frame({.sequence = 1}));
    say(frame({DataFrameType::kReadRequest, 1, FrameStatus::kOk, 0, 0}, {{pin, 64, 0, 1}}));
    say(frame({.type = DataFrameType::kReadData, .payload = 164}, {}, 164 + kTrailerBytes));
    say(frame({.type = DataFrameType::kCancel}));
    for (std::uint64_t i = random.below(4); i > 0; --i)
      talk[random.below(talk.size())] = static_cast<std::byte>(random.next());
    if (random.chance(0.3)) talk.resize(random.below(talk.size()));
    for (std::size_t at = 0; at < talk.size();) {
      const std::size_t part = std::min<std::size_t>(1 + random.below(200), talk.size() - at);
      if (!stage.give(std::span(talk).subspan(at, part)).empty()) break;
      at += part;
      if (random.chance(0.5)) stage.take();
    }
    ASSERT_TRUE(stage.intact()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace viaduct::tcp
