#include "agent/session/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/net/checksum.h"

namespace viaduct::agent {
namespace {

using base::Bytes;
using base::bytesOf;
using Decoded = FrameDecoder::Next;

const Key kKey{1, 2, 3};

Bytes sealed(FrameSealer& sealer, FrameType type, std::string_view payload, std::size_t fds = 0) {
  const auto header = sealer.seal(type, bytesOf(payload).first(payload.size() / 2),
                                  bytesOf(payload).subspan(payload.size() / 2), fds);
  return base::Writer().raw(header).raw(bytesOf(payload)).take();
}

// Makes a changed frame consistent again, as an end that knows the key could.
void reseal(Bytes& frame, const Key* key) {
  const ByteSpan head = ByteSpan(frame).first(24), payload = ByteSpan(frame).subspan(40);
  std::fill(frame.begin() + 24, frame.begin() + 40, std::byte{0});
  if (key != nullptr) {
    const base::Sha256Digest digest = Hmac(*key).of({head, payload});
    std::memcpy(&frame[24], digest.data(), 16);
  } else {
    base::storeLittle(&frame[24], base::Checksum().add(head).add(payload).value());
  }
}

struct Seen {
  std::vector<std::pair<FrameType, std::string>> frames;
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

class FrameTest : public ::testing::TestWithParam<bool> {
 protected:
  FrameTest() {
    if (GetParam()) {
      sealer_.useKey(kKey);
      decoder_.useKey(kKey);
    }
  }
  const Key* key() const { return GetParam() ? &kKey : nullptr; }
  // The result of a fresh decoder in the same state for these bytes.
  Seen fresh(ByteSpan bytes, Error* why = nullptr) const {
    FrameDecoder decoder(kMaxFramePayload);
    if (GetParam()) decoder.useKey(kKey);
    Seen seen = feed(decoder, bytes);
    if (why != nullptr) *why = decoder.error();
    return seen;
  }
  FrameSealer sealer_;
  FrameDecoder decoder_{kMaxFramePayload};
};

INSTANTIATE_TEST_SUITE_P(Under, FrameTest, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "Mac" : "Checksum"; });

TEST_P(FrameTest, FramesAreDecodedFromPiecesOfAnySize) {
  Bytes stream;
  std::vector<std::pair<FrameType, std::string>> sent;
  for (std::size_t size : {0U, 1U, 2U, 7U, 4095U, 4096U, 5000U, 100000U}) {
    std::string payload(size, '\0');
    for (std::size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 31);
    const Bytes frame = sealed(sealer_, FrameType::kNote, payload);
    stream.insert(stream.end(), frame.begin(), frame.end());
    sent.emplace_back(FrameType::kNote, payload);
  }
  for (std::size_t piece : {std::size_t{1}, std::size_t{39}, std::size_t{4096}, stream.size()}) {
    FrameDecoder decoder(kMaxFramePayload);
    if (GetParam()) decoder.useKey(kKey);
    const Seen seen = feed(decoder, stream, piece);
    EXPECT_EQ(seen.frames, sent) << piece;
    EXPECT_EQ(seen.last, Decoded::kMore);
    EXPECT_FALSE(decoder.midFrame());
  }
}

TEST_P(FrameTest, EveryChangedBitIsDetected) {
  const Bytes good = sealed(sealer_, FrameType::kNote, "what is said");
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
  const Bytes one = sealed(sealer_, FrameType::kNote, "one");
  const Bytes two = sealed(sealer_, FrameType::kNote, "two");
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

TEST(Frame, AFrameUnderAnotherKeyIsRefused) {
  for (const bool with_mac : {false, true}) {
    FrameSealer forger;
    if (with_mac) forger.useKey({9});
    FrameDecoder decoder(kMaxFramePayload);
    decoder.useKey(kKey);
    EXPECT_EQ(feed(decoder, sealed(forger, FrameType::kNote, "x")).last, Decoded::kBroken);
    EXPECT_EQ(decoder.error().code, Code::kProtocol);
  }
}

TEST_P(FrameTest, AnotherMajorVersionIsRefusedAndBothAreNamed) {
  Bytes frame = sealed(sealer_, FrameType::kNote, "x");
  frame[4] = std::byte{9};
  frame[5] = std::byte{3};
  reseal(frame, key());
  Error why;
  EXPECT_EQ(fresh(ByteSpan(frame).first(6), &why).last, Decoded::kBroken);
  EXPECT_EQ(why.code, Code::kUnsupported);
  EXPECT_NE(why.detail.find("9.3"), std::string::npos) << why.detail;
  EXPECT_NE(why.detail.find("1." + std::to_string(kWireMinor)), std::string::npos) << why.detail;
}

TEST_P(FrameTest, UnknownTypesAreSkippedOnlyFromANewerMinorVersion) {
  Bytes frame = sealed(sealer_, static_cast<FrameType>(0x30), "x", 2);
  EXPECT_EQ(fresh(frame).last, Decoded::kBroken);
  frame[5] = std::byte{kWireMinor + 1};
  frame[7] = std::byte{0xff};  // flags that a newer version may define
  reseal(frame, key());
  const Seen seen = fresh(frame);
  EXPECT_EQ(seen.last, Decoded::kMore);
  EXPECT_EQ(seen.skipped, 1U);
}

TEST_P(FrameTest, FlagsOfThisVersionAreZero) {
  for (const std::size_t at : {7U, 14U, 15U}) {
    FrameSealer sealer;
    if (GetParam()) sealer.useKey(kKey);
    Bytes frame = sealed(sealer, FrameType::kNote, "x");
    frame[at] = std::byte{1};
    reseal(frame, key());
    EXPECT_EQ(fresh(frame).last, Decoded::kBroken);
  }
}

TEST_P(FrameTest, AnotherProtocolIsRefusedAtItsFirstByte) {
  Error why;
  EXPECT_EQ(fresh(bytesOf("G"), &why).last, Decoded::kBroken);
  EXPECT_EQ(why.code, Code::kProtocol);
  EXPECT_NE(why.detail.find("not a Viaduct session"), std::string::npos);
  EXPECT_EQ(fresh(bytesOf("VDC")).last, Decoded::kMore);
}

TEST_P(FrameTest, NoLengthFieldMakesTheDecoderExceedItsLimit) {
  for (const std::size_t limit : {kMaxUnprovenPayload, kMaxHelloPayload, kMaxFramePayload}) {
    for (const std::uint64_t length : {std::uint64_t{limit}, std::uint64_t{limit} + 1,
                                       std::uint64_t{0x7fffffff}, std::uint64_t{0xffffffff}}) {
      FrameSealer sealer;
      Bytes frame = sealed(sealer, FrameType::kBackend, "");
      base::storeLittle(&frame[8], static_cast<std::uint32_t>(length));
      FrameDecoder decoder(limit);
      const Seen seen = feed(decoder, frame);
      EXPECT_EQ(seen.last, length > limit ? Decoded::kBroken : Decoded::kMore);
      static_cast<void>(decoder.space());
      EXPECT_LE(decoder.capacity(), std::max(limit + kFrameHeaderBytes, std::size_t{4096}));
    }
  }
}

TEST_P(FrameTest, TheBufferShrinksAgainAfterALargeFrame) {
  const std::string large(kMaxFramePayload, 'x');
  EXPECT_EQ(feed(decoder_, sealed(sealer_, FrameType::kBackend, large)).frames.size(), 1U);
  EXPECT_GE(decoder_.capacity(), kMaxFramePayload);
  for (int i = 0; i < 20; ++i) feed(decoder_, sealed(sealer_, FrameType::kHeartbeat, ""));
  static_cast<void>(decoder_.space());
  EXPECT_EQ(decoder_.capacity(), 4096U);
}

}  // namespace
}  // namespace viaduct::agent
