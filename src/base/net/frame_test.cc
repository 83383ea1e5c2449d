#include "base/net/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/net/checksum.h"

namespace viaduct::base {
namespace {

using Decoded = FrameDecoder::Next;

const Key kKey{1, 2, 3};
constexpr std::uint8_t kBeat = 1, kNote = 2, kUnknown = 9;
constexpr std::size_t kMost = std::size_t{1} << 20U, kMostOfABeat = 8;

constexpr FrameProtocol protocolOf(bool by_digest) {
  return {.magic = "TEST",
          .version = {.major = 3, .minor = 1},
          .other_end = "test",
          .knows = [](std::uint8_t type) { return type < kUnknown; },
          .check_size = [](std::uint8_t type, std::size_t bytes, std::size_t) -> Status {
            if (type != kBeat || bytes <= kMostOfABeat) return Ok{};
            return Error{.code = Code::kProtocol, .detail = "a long beat"};
          },
          .by_digest = by_digest};
}
constexpr FrameProtocol kDirect = protocolOf(false), kByDigest = protocolOf(true);

Bytes sealed(FrameSealer& sealer, std::uint8_t type, std::string_view payload,
             std::size_t fds = 0) {
  Bytes bytes = Writer().raw(bytesOf(payload)).take();
  const auto header = sealer.encrypts()
                          ? sealer.encrypt(type, bytes, fds).value()
                          : sealer.seal(type, ByteSpan(bytes).first(payload.size() / 2),
                                        ByteSpan(bytes).subspan(payload.size() / 2), fds);
  return Writer().raw(header).raw(bytes).take();
}

// Makes a changed frame with the payload "x" consistent again, as an end that knows the key could.
void reseal(Bytes& frame, const Key* key, const FrameProtocol& protocol) {
  const ByteSpan head = ByteSpan(frame).first(24);
  if (key != nullptr && !protocol.by_digest) {
    auto keys = RecordKeys::open(*makeAead(AeadKind::kAesGcm, AeadUse::kSeal), *key);
    ASSERT_TRUE((*keys)->seal(head, bytesOf("x"), &frame[40], &frame[24]));
    return;
  }
  const Sha256Digest of_payload = payloadDigest(ByteSpan(frame).subspan(40));
  const ByteSpan payload =
      protocol.by_digest ? std::as_bytes(std::span(of_payload)) : ByteSpan(frame).subspan(40);
  std::fill(frame.begin() + 24, frame.begin() + 40, std::byte{0});
  if (key != nullptr) {
    const Sha256Digest digest = Hmac(*key).of({head, payload});
    std::memcpy(&frame[24], digest.data(), 16);
  } else {
    storeLittle(&frame[24], Checksum().add(head).add(payload).value());
  }
}

struct Seen {
  std::vector<std::pair<std::uint8_t, std::string>> frames;
  std::size_t skipped = 0, largest = 0;
  Decoded last = Decoded::kMore;
};

// Feeds the bytes to the decoder in pieces of at most `piece` bytes.
Seen feed(FrameDecoder& decoder, ByteSpan bytes, std::size_t piece = SIZE_MAX) {
  Seen seen;
  while (!bytes.empty() && seen.last != Decoded::kBroken) {
    const auto space = decoder.space();
    seen.largest = std::max(seen.largest, decoder.capacity());
    const std::size_t n = std::min({piece, bytes.size(), space.size()});
    std::memcpy(space.data(), bytes.data(), n);
    decoder.wrote(n);
    bytes = bytes.subspan(n);
    Frame frame;
    while ((seen.last = decoder.next(frame)) == Decoded::kFrame) {
      if (frame.skip)
        ++seen.skipped;
      else
        seen.frames.emplace_back(
            frame.type,
            std::string(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size()));
    }
  }
  return seen;
}

struct Way {
  const char* name;
  const FrameProtocol& protocol;
  bool with_mac;
};

class FrameTest : public ::testing::TestWithParam<Way> {
 protected:
  const FrameProtocol& protocol() const { return GetParam().protocol; }
  const Key* key() const { return GetParam().with_mac ? &kKey : nullptr; }
  FrameSealer sealer() const {
    FrameSealer out(protocol());
    EXPECT_TRUE(key() == nullptr || out.useKey(kKey));
    return out;
  }
  FrameDecoder decoder(std::size_t limit = kMost) const {
    FrameDecoder out(protocol(), limit);
    EXPECT_TRUE(key() == nullptr || out.useKey(kKey));
    return out;
  }
  // The result of a fresh decoder in the same state for these bytes.
  Seen fresh(ByteSpan bytes, Error* why = nullptr) const {
    FrameDecoder decoder = this->decoder();
    Seen seen = feed(decoder, bytes);
    if (why != nullptr) *why = decoder.error();
    return seen;
  }
  FrameSealer sealer_ = sealer();
};

INSTANTIATE_TEST_SUITE_P(Under, FrameTest,
                         ::testing::Values(Way{"Checksum", kDirect, false},
                                           Way{"Encrypted", kDirect, true},
                                           Way{"ChecksumOfTheDigest", kByDigest, false},
                                           Way{"MacOfTheDigest", kByDigest, true}),
                         [](const auto& way) { return way.param.name; });

TEST_P(FrameTest, FramesAreDecodedFromPiecesOfAnySize) {
  Bytes stream;
  std::vector<std::pair<std::uint8_t, std::string>> sent;
  for (std::size_t size : {0U, 1U, 2U, 7U, 4095U, 4096U, 5000U, 100000U}) {
    std::string payload(size, '\0');
    for (std::size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 31);
    const Bytes frame = sealed(sealer_, kNote, payload);
    stream.insert(stream.end(), frame.begin(), frame.end());
    sent.emplace_back(kNote, payload);
  }
  for (std::size_t piece : {std::size_t{1}, std::size_t{39}, std::size_t{4096}, stream.size()}) {
    FrameDecoder decoder = this->decoder();
    const Seen seen = feed(decoder, stream, piece);
    EXPECT_EQ(seen.frames, sent) << piece;
    EXPECT_EQ(seen.last, Decoded::kMore);
    EXPECT_FALSE(decoder.midFrame());
  }
}

TEST_P(FrameTest, EveryChangedBitIsDetected) {
  const Bytes good = sealed(sealer_, kNote, "what is said");
  for (std::size_t at = 0; at < good.size(); ++at)
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[at] ^= static_cast<std::byte>(1U << bit);
      const Seen seen = fresh(bad);
      EXPECT_TRUE(seen.frames.empty() && seen.skipped == 0) << at;
      // Waiting for more bytes is right only if the changed length is greater.
      if (seen.last != Decoded::kBroken) {
        EXPECT_TRUE(at >= 8 && at < 12) << at;
      }
    }
}

TEST_P(FrameTest, ReplayedReorderedAndLostFramesAreRefused) {
  const Bytes one = sealed(sealer_, kNote, "one");
  const Bytes two = sealed(sealer_, kNote, "two");
  const auto joined = [](const Bytes& a, const Bytes& b) {
    Bytes out = a;
    out.insert(out.end(), b.begin(), b.end());
    return out;
  };
  EXPECT_EQ(fresh(joined(one, two)).frames.size(), 2U);
  for (const Bytes& bad : {joined(one, one), joined(two, one), two}) {
    Error why;
    const Seen seen = fresh(bad, &why);
    EXPECT_LE(seen.frames.size(), 1U);
    EXPECT_EQ(seen.last, Decoded::kBroken);
    EXPECT_EQ(why.code, Code::kProtocol);
    EXPECT_NE(why.detail.find("instead of"), std::string::npos) << why.detail;
  }
}

TEST_P(FrameTest, AFrameUnderAnotherKeyIsRefused) {
  for (const bool with_mac : {false, true}) {
    FrameSealer forger(protocol());
    EXPECT_TRUE(!with_mac || forger.useKey({9}));
    FrameDecoder decoder = this->decoder();
    EXPECT_TRUE(decoder.useKey(kKey));
    EXPECT_EQ(feed(decoder, sealed(forger, kNote, "x")).last, Decoded::kBroken);
    EXPECT_EQ(decoder.error().code, Code::kProtocol);
  }
}

TEST_P(FrameTest, AnotherMajorVersionIsRefusedAndBothAreNamed) {
  Bytes frame = sealed(sealer_, kNote, "x");
  frame[4] = std::byte{9};
  frame[5] = std::byte{3};
  reseal(frame, key(), protocol());
  Error why;
  EXPECT_EQ(fresh(ByteSpan(frame).first(6), &why).last, Decoded::kBroken);
  EXPECT_EQ(why.code, Code::kUnsupported);
  EXPECT_NE(why.detail.find("9.3"), std::string::npos) << why.detail;
  EXPECT_NE(why.detail.find("this end 3.1"), std::string::npos) << why.detail;
}

TEST_P(FrameTest, UnknownTypesAreSkippedOnlyFromANewerMinorVersion) {
  Bytes frame = sealed(sealer_, kUnknown, "x", 2);
  EXPECT_EQ(fresh(frame).last, Decoded::kBroken);
  frame[5] = std::byte{2};
  frame[7] = std::byte{0xff};  // flags that a newer version may define
  reseal(frame, key(), protocol());
  const Seen seen = fresh(frame);
  EXPECT_EQ(seen.last, Decoded::kMore);
  EXPECT_EQ(seen.skipped, 1U);
}

TEST_P(FrameTest, FlagsOfThisVersionAreZero) {
  for (const std::size_t at : {7U, 14U, 15U}) {
    FrameSealer sealer = this->sealer();
    Bytes frame = sealed(sealer, kNote, "x");
    frame[at] = std::byte{1};
    reseal(frame, key(), protocol());
    EXPECT_EQ(fresh(frame).last, Decoded::kBroken);
  }
}

TEST_P(FrameTest, AnotherProtocolIsRefusedAtItsFirstByte) {
  Error why;
  EXPECT_EQ(fresh(bytesOf("G"), &why).last, Decoded::kBroken);
  EXPECT_EQ(why.code, Code::kProtocol);
  EXPECT_EQ(why.detail, "the other end is no test; it sent \"G\"");
  EXPECT_EQ(fresh(bytesOf("TES\x1b[31m\nmore"), &why).last, Decoded::kBroken);
  EXPECT_EQ(why.detail, "the other end is no test; it sent \"TES\\x1b[31m\"");
  EXPECT_EQ(fresh(bytesOf("TES")).last, Decoded::kMore);
}

TEST_P(FrameTest, NoLengthFieldMakesTheDecoderExceedItsLimit) {
  for (const std::size_t limit : {std::size_t{64}, std::size_t{64} << 10U, kMost}) {
    for (const std::uint64_t length : {std::uint64_t{limit}, std::uint64_t{limit} + 1,
                                       std::uint64_t{0x7fffffff}, std::uint64_t{0xffffffff}}) {
      FrameSealer sealer = this->sealer();
      Bytes frame = sealed(sealer, kNote, "");
      storeLittle(&frame[8], static_cast<std::uint32_t>(length));
      FrameDecoder decoder = this->decoder(limit);
      const Seen seen = feed(decoder, frame);
      EXPECT_EQ(seen.last, length > limit ? Decoded::kBroken : Decoded::kMore);
      static_cast<void>(decoder.space());
      EXPECT_LE(decoder.capacity(), std::max(limit + kFrameHeaderBytes, std::size_t{4096}));
    }
  }
}

TEST_P(FrameTest, TheBufferShrinksAgainAfterALargeFrame) {
  FrameDecoder decoder = this->decoder();
  const std::string large(kMost, 'x');
  EXPECT_EQ(feed(decoder, sealed(sealer_, kNote, large)).frames.size(), 1U);
  EXPECT_GE(decoder.capacity(), kMost);
  for (int i = 0; i < 20; ++i) feed(decoder, sealed(sealer_, kBeat, ""));
  static_cast<void>(decoder.space());
  EXPECT_EQ(decoder.capacity(), 4096U);
  decoder.freeBuffer();
  EXPECT_EQ(decoder.capacity(), 0U);
  EXPECT_EQ(feed(decoder, sealed(sealer_, kNote, "again")).frames.size(), 1U);
}

TEST_P(FrameTest, AFrameAboveTheLimitOfItsTypeIsRefusedByItsHeader) {
  const Bytes good = sealed(sealer_, kBeat, std::string(kMostOfABeat, 'b'));
  EXPECT_EQ(fresh(good).frames.size(), 1U);
  FrameSealer sealer = this->sealer();
  const Bytes bad = sealed(sealer, kBeat, std::string(kMostOfABeat + 1, 'b'));
  Error why;
  EXPECT_EQ(fresh(ByteSpan(bad).first(kFrameHeaderBytes), &why).last, Decoded::kBroken);
  EXPECT_EQ(why.detail, "a long beat");
}

TEST(Frame, NothingOfAnEncryptedPayloadCanBeRead) {
  const std::string payload = "a label and a ticket, of sixty-four bytes in all, on the wire 012";
  FrameSealer sealer(kDirect);
  ASSERT_TRUE(sealer.useKey(kKey));
  const Bytes one = sealed(sealer, kNote, payload), two = sealed(sealer, kNote, payload);
  ASSERT_EQ(one.size(), kFrameHeaderBytes + payload.size());
  for (std::size_t at = 0; at + 8 <= payload.size(); ++at)
    EXPECT_EQ(textOf(one).find(payload.substr(at, 8)), std::string::npos) << at;
  EXPECT_NE(textOf(one).substr(40), textOf(two).substr(40)) << "each has its own nonce";
}

TEST(Frame, APayloadIsReadOnceForManyConnections) {
  const Bytes payload(1000, std::byte{7});
  FrameSealer one(kByDigest), other(kByDigest);
  EXPECT_EQ(one.seal(kNote, payload, {}, 0),
            other.sealDigest(kNote, payload.size(), payloadDigest(payload)));
}

}  // namespace
}  // namespace viaduct::base
