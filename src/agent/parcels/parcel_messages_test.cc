#include "agent/parcels/parcel_messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace viaduct::agent {
namespace {

WantMessage fullWant() {
  return {.number = 9,
          .name = "request 8a17",
          .version = 4,
          .layout = 77,
          .exact = true,
          .owner = AgentIdBytes{1, 2, 3},
          .group = "decode",
          .size = 4,
          .rank = 3,
          .at_least = 2,
          .parts = {{.rank = 1, .component = 2}, {.rank = 0, .component = 7}}};
}

TEST(ParcelMessages, AllKindsComeBackAsTheyWere) {
  const ParcelEnd end{.outcome = ParcelOutcome::kFailed,
                      .version = 3,
                      .part = ParcelPart{.rank = 2, .component = 5},
                      .consumer = 1,
                      .why = Error{.code = Code::kStale, .operation = "read"},
                      .ranks = {0, 1}};
  const std::vector<ParcelMessage> all{
      fullWant(),
      OfferMessage{.number = 1, .version = 2, .parts = {{.rank = 3, .component = 4}}},
      ReadyMessage{.number = 5, .part = {.rank = 6, .component = 7}, .ticket = base::Bytes(3)},
      ReportMessage{8, end},
      VerdictMessage{9, end},
      AddMessage{1, {.name = "kv", .version = 2, .layout = 3, .parts = {{}}, .takers = 4}},
      HasMessage{2, {.rank = 1}},
      LendMessage{.number = 3, .part = {.rank = 1}, .taker = {4, 5}, .consumer = "decode"},
      LentMessage{.number = 3, .taker = {4, 5}, .digests = base::Bytes(7), .why = Error{}},
      CutMessage{6, {7, 8}},
      FreedMessage{9, {.rank = 1}, {7, 8}},
      CloseMessage{true, 1, end}};
  for (const ParcelMessage& message : all) {
    const base::Bytes bytes = encodeParcel(message);
    const auto read = decodeParcel(bytes);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->index(), message.index());
    EXPECT_EQ(encodeParcel(*read), bytes);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
      EXPECT_FALSE(decodeParcel(std::span(bytes).first(cut))) << cut;
  }
}

TEST(ParcelMessages, ValuesAboveTheirLimitsAreRefused) {
  const auto refuses = [](const auto& change) {
    WantMessage want = fullWant();
    change(want);
    return !decodeParcel(encodeParcel(want));
  };
  EXPECT_FALSE(refuses([](WantMessage&) {}));
  EXPECT_TRUE(refuses([](WantMessage& want) { want.name.resize(kMaxParcelName + 1, 'n'); }));
  EXPECT_TRUE(refuses([](WantMessage& want) { want.group = "a\nb"; }));
  EXPECT_TRUE(refuses([](WantMessage& want) { want.rank = want.size; }));
  EXPECT_TRUE(refuses([](WantMessage& want) { want.at_least = want.size + 1; }));
  EXPECT_TRUE(refuses([](WantMessage& want) { want.size = kMaxParcelParts + 1; }));
  EXPECT_TRUE(refuses([](WantMessage& want) { want.parts.resize(kMaxParcelParts + 1); }));
  ReportMessage report{.number = 1};
  report.end.outcome = static_cast<ParcelOutcome>(6);
  EXPECT_FALSE(decodeParcel(encodeParcel(report)));
  EXPECT_FALSE(decodeParcel(base::Bytes(1, std::byte{99})));
  EXPECT_FALSE(decodeParcel({}));
}

}  // namespace
}  // namespace viaduct::agent
