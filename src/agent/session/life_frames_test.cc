#include "agent/session/life_frames.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "agent/session/session_pair_testing.h"

namespace viaduct::agent {
namespace {

std::string keptIn(const SentFrames& frames) {
  std::string out;
  for (const auto& [type, payload] : frames.kept()) out += textOf(payload) + " ";
  return out;
}

TEST(SentFrames, AreKeptUntilTheyAreConfirmed) {
  SentFrames frames(1000);
  for (const std::string_view text : {"a", "b", "c"})
    frames.add(FrameType::kNote, bytesOf(text), bytesOf("!"));
  EXPECT_EQ(keptIn(frames), "a! b! c! ");
  EXPECT_TRUE(frames.follows(0));
  EXPECT_TRUE(frames.heard(2));
  EXPECT_EQ(keptIn(frames), "c! ");
  EXPECT_FALSE(frames.follows(1)) << "the second is gone";
  EXPECT_TRUE(frames.follows(2));
  EXPECT_TRUE(frames.follows(3));
  EXPECT_TRUE(frames.heard(1)) << "said before, and late";
  EXPECT_EQ(keptIn(frames), "c! ");
  EXPECT_TRUE(frames.heard(3));
  EXPECT_EQ(keptIn(frames), "");
}

TEST(SentFrames, CannotBeConfirmedBeforeTheyAreSent) {
  SentFrames frames(1000);
  frames.add(FrameType::kNote, bytesOf("a"), {});
  EXPECT_FALSE(frames.heard(2));
  EXPECT_FALSE(frames.follows(2));
  EXPECT_TRUE(frames.follows(0));
}

TEST(SentFrames, BeyondTheLimitAreKeptAgainOnceAllAreConfirmed) {
  SentFrames frames(3 * (kFrameHeaderBytes + 1));
  for (int i = 0; i < 4; ++i) frames.add(FrameType::kNote, bytesOf("x"), {});
  EXPECT_EQ(keptIn(frames), "");
  EXPECT_FALSE(frames.follows(0));
  EXPECT_FALSE(frames.follows(3));
  EXPECT_TRUE(frames.follows(4));
  EXPECT_TRUE(frames.heard(3));
  frames.add(FrameType::kNote, bytesOf("y"), {});
  EXPECT_FALSE(frames.follows(4)) << "one of those that were not kept is still under way";
  EXPECT_TRUE(frames.heard(5));
  frames.add(FrameType::kNote, bytesOf("z"), {});
  EXPECT_TRUE(frames.follows(5));
  EXPECT_EQ(keptIn(frames), "z ");
  for (std::uint64_t n = 6; n < 100; ++n) {  // confirmed frames take no room
    EXPECT_TRUE(frames.heard(n));
    frames.add(FrameType::kNote, bytesOf("z"), {});
    EXPECT_EQ(keptIn(frames), "z ");
  }
}

TEST(SentFrames, AreEmptyAfterClear) {
  SentFrames frames(1000);
  frames.add(FrameType::kNote, bytesOf("a"), {});
  frames.clear();
  EXPECT_TRUE(frames.follows(0));
  EXPECT_EQ(keptIn(frames), "");
  frames.add(FrameType::kNote, bytesOf("b"), {});
  EXPECT_TRUE(frames.follows(0));
}

// The old connection may bring more frames after the other end was told the number of received
// frames.
TEST(HeardFrames, RepeatedFramesAreRecognized) {
  HeardFrames frames;
  for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_TRUE(frames.take(i));
  const std::uint64_t told = 3;
  frames.goOn(5, told);
  EXPECT_EQ(frames.total(0), 5U);
  EXPECT_FALSE(frames.take(1)) << "the fourth";
  EXPECT_FALSE(frames.take(2)) << "the fifth";
  EXPECT_EQ(frames.total(2), 5U);
  EXPECT_TRUE(frames.take(3));
  EXPECT_EQ(frames.total(3), 6U);
}

TEST(HeardFrames, RepeatedFramesAreRecognizedAfterAnInterruptedRepetition) {
  HeardFrames frames;
  for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_TRUE(frames.take(i));
  frames.goOn(5, 1);
  EXPECT_FALSE(frames.take(1)) << "the second";
  frames.goOn(1, 2);
  for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_FALSE(frames.take(i)) << "up to the fifth";
  EXPECT_TRUE(frames.take(4));
}

// A frame of unknown type, from a later release, is counted as well.
TEST(HeardFrames, TheTotalIncludesSkippedFrames) {
  HeardFrames frames;
  EXPECT_TRUE(frames.take(1));
  EXPECT_EQ(frames.total(3), 3U);
  frames.goOn(3, 3);
  EXPECT_TRUE(frames.take(1));
  EXPECT_EQ(frames.total(1), 4U);
}

}  // namespace
}  // namespace viaduct::agent
