// Tests the rules of the frame types: each type has a row, and each limit is enforced before the
// frame is handled.
#include "agent/session/frame_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "agent/session/session_pair_testing.h"

namespace viaduct::agent {
namespace {

// The compiler names an enumerator "kPin", and prints a number for any other value.
template <FrameType kType>
constexpr bool isEnumerator() {
  constexpr std::string_view kText = __PRETTY_FUNCTION__;
  return kText.find("FrameType::k", kText.find("kType =")) != std::string_view::npos;
}
static_assert(isEnumerator<FrameType::kPin>() && !isEnumerator<static_cast<FrameType>(255)>());

template <std::size_t... kNumber>
constexpr bool everyTypeHasItsRow(std::index_sequence<kNumber...> /*numbers*/) {
  return ((isEnumerator<static_cast<FrameType>(kNumber)>() ==
           isKnown(static_cast<FrameType>(kNumber))) &&
          ...);
}
static_assert(everyTypeHasItsRow(std::make_index_sequence<256>()),
              "add the new frame type to kFrameRules and to docs/wire.md");

constexpr bool rowsDiffer() {
  for (std::size_t row = 0; row < kFrameRules.size(); ++row)
    if (rowOf(kFrameRules[row].type) != row) return false;
  return true;
}
static_assert(rowsDiffer());

const FrameRule& rule(FrameType type) { return *ruleOf(type); }

TEST(FrameRules, AFrameAboveItsSizeIsRefusedByItsHeader) {
  for (const FrameRule& one : kFrameRules)
    for (const std::size_t more : {0U, 1U}) {
      FrameSealer sealer{kSessionFrames};
      auto header = sealer.seal(numberOf(one.type), {}, {}, one.most_fds);
      base::storeLittle(&header[8], static_cast<std::uint32_t>(one.most_bytes + more));
      FrameDecoder decoder(kSessionFrames, kMaxFramePayload);
      std::ranges::copy(header, decoder.space().begin());
      decoder.wrote(header.size());
      Frame frame;
      const auto next = decoder.next(frame);
      if (more == 0) {
        EXPECT_TRUE(next == FrameDecoder::Next::kMore || one.most_bytes == 0) << one.name;
        continue;
      }
      EXPECT_EQ(next, FrameDecoder::Next::kBroken) << one.name;
      EXPECT_NE(decoder.error().detail.find(std::to_string(one.most_bytes + 1)), std::string::npos);
      EXPECT_NE(decoder.error().detail.find("limit of " + std::to_string(one.most_bytes)),
                std::string::npos)
          << decoder.error().detail;
    }
}

TEST(FrameRules, DescriptorsAreOnlyForTheTypesThatHaveThem) {
  for (const FrameRule& one : kFrameRules) {
    EXPECT_TRUE(checkSize(one, one.most_bytes, one.most_fds));
    const Status more = checkSize(one, 0, one.most_fds + 1);
    ASSERT_FALSE(more);
    EXPECT_NE(more.error().detail.find(one.name), std::string::npos);
  }
}

TEST(FrameOrder, NotesMarksAndLeasesComeAfterThePins) {
  for (const FrameRule& one : kFrameRules) {
    if (isHandshake(one.type)) continue;
    FrameOrder order;
    const bool early = one.stage != FrameStage::kSynced;
    EXPECT_EQ(static_cast<bool>(order.take(one)), early) << one.name;
    FrameOrder synced;
    EXPECT_TRUE(synced.take(rule(FrameType::kSynced)));
    EXPECT_EQ(static_cast<bool>(synced.take(one)), one.type != FrameType::kSynced) << one.name;
  }
}

TEST(FrameOrder, NothingComesAfterTheGoodbye) {
  for (const FrameRule& one : kFrameRules) {
    if (isHandshake(one.type)) continue;
    FrameOrder order;
    EXPECT_TRUE(order.take(rule(FrameType::kSynced)));
    EXPECT_TRUE(order.take(rule(FrameType::kBye)));
    EXPECT_FALSE(order.take(one)) << one.name;
  }
}

TEST(FrameOrder, CountsTheFramesThatComeOnce) {
  for (const FrameRule& one : kFrameRules) {
    if (isHandshake(one.type) || one.type == FrameType::kBye) continue;
    FrameOrder order;
    if (one.stage == FrameStage::kSynced) {
      EXPECT_TRUE(order.take(rule(FrameType::kSynced)));
    }
    for (std::uint64_t i = 0; i < (one.most_times == 0 ? 100 : one.most_times); ++i)
      EXPECT_TRUE(order.take(one)) << one.name;
    if (one.most_times == 0) continue;
    const Status more = order.take(one);
    ASSERT_FALSE(more);
    EXPECT_NE(more.error().detail.find(fmt::format("limit of {}", one.most_times)),
              std::string::npos);
  }
}

// A peer sends small frames without a pause. Each round of the poller takes a part of them, so that
// other peers have their turn.
TEST(FrameRules, ATurnOfReadingEndsThoughMoreFramesWait) {
  ManualPoller manual;
  SessionPair pair(Kind::kUnix, manual);
  ASSERT_TRUE(manual.run([&] { return pair.ready(); }));
  pair.at_listener.keep = false;
  constexpr std::size_t kFrames = 1000;
  const FrameRule& unpin = rule(FrameType::kUnpin);
  for (std::size_t i = 0; i < kFrames; ++i)
    ASSERT_TRUE(pair.dialer->send(unpin.type, bytesOf("slot")));
  std::size_t most = 0;
  for (std::size_t before = 0; before < kFrames;) {
    manual.pollOnce();
    const std::size_t now = pair.at_listener.types.size();
    most = std::max(most, now - before);
    before = now;
  }
  EXPECT_LE(most, 2000U / static_cast<unsigned>(unpin.cost_us));
}

}  // namespace
}  // namespace viaduct::agent
