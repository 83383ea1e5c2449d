#include "agent/session/sent_frames.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "agent/session/session_pair.h"

namespace viaduct::agent {
namespace {

std::string keptIn(const SentFrames& frames) {
  std::string out;
  for (const auto& [type, payload] : frames.kept()) out += textOf(payload) + " ";
  return out;
}

TEST(SentFrames, AreKeptUntilTheyAreHeard) {
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

TEST(SentFrames, CannotBeHeardBeforeTheyAreSent) {
  SentFrames frames(1000);
  frames.add(FrameType::kNote, bytesOf("a"), {});
  EXPECT_FALSE(frames.heard(2));
  EXPECT_FALSE(frames.follows(2));
  EXPECT_TRUE(frames.follows(0));
}

TEST(SentFrames, BeyondTheLimitAreKeptAgainOnceAllHaveBeenHeard) {
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
  for (std::uint64_t n = 6; n < 100; ++n) {  // what has been heard takes no room
    EXPECT_TRUE(frames.heard(n));
    frames.add(FrameType::kNote, bytesOf("z"), {});
    EXPECT_EQ(keptIn(frames), "z ");
  }
}

TEST(SentFrames, OfAnotherLifeBeginAnew) {
  SentFrames frames(1000);
  frames.add(FrameType::kNote, bytesOf("a"), {});
  frames.clear();
  EXPECT_EQ(frames.sent(), 0U);
  EXPECT_EQ(keptIn(frames), "");
  frames.add(FrameType::kNote, bytesOf("b"), {});
  EXPECT_TRUE(frames.follows(0));
}

}  // namespace
}  // namespace viaduct::agent
