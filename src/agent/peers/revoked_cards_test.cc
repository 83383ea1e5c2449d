#include "agent/peers/revoked_cards.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

const WallTime kNow = WallTime(std::chrono::milliseconds(1'800'000'000'000));

CardId idOf(std::uint32_t number) {
  CardId id{};
  std::memcpy(id.data(), &number, sizeof number);
  return id;
}

TEST(RevokedCards, CoverAllThatWereNarrowedFromThem) {
  RevokedCards revoked;
  ASSERT_TRUE(revoked.add(idOf(2), std::nullopt, kNow));
  EXPECT_TRUE(revoked.has(std::vector<Grant>{{.id = idOf(1)}, {.id = idOf(2)}, {.id = idOf(3)}}));
  EXPECT_FALSE(revoked.has(std::vector<Grant>{{.id = idOf(1)}}));
}

TEST(RevokedCards, AreForgottenAtTheirEndOnceThereIsNoRoom) {
  RevokedCards revoked;
  for (std::uint32_t i = 0; i + 1 < RevokedCards::kMost; ++i)
    ASSERT_TRUE(revoked.add(idOf(i), std::nullopt, kNow));
  ASSERT_TRUE(revoked.add(idOf(1'000'000), kNow + 1s, kNow));
  const Status full = revoked.add(idOf(1'000'001), std::nullopt, kNow);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kExhausted);
  EXPECT_NE(full.error().remedy.find("revokeCards()"), std::string::npos);
  EXPECT_TRUE(revoked.add(idOf(7), std::nullopt, kNow)) << "known already";
  EXPECT_TRUE(revoked.add(idOf(1'000'001), std::nullopt, kNow + 1s));
  EXPECT_FALSE(revoked.has(std::vector<Grant>{{.id = idOf(1'000'000)}}));
}

TEST(RevokedCards, ALaterEndHolds) {
  RevokedCards revoked;
  ASSERT_TRUE(revoked.add(idOf(0), kNow + 1s, kNow));
  ASSERT_TRUE(revoked.add(idOf(0), kNow + 9s, kNow));
  ASSERT_TRUE(revoked.add(idOf(0), kNow + 1s, kNow));
  for (std::uint32_t i = 1; i < RevokedCards::kMost; ++i)
    ASSERT_TRUE(revoked.add(idOf(i), std::nullopt, kNow));
  EXPECT_FALSE(revoked.add(idOf(1'000'000), std::nullopt, kNow + 8s));
  EXPECT_TRUE(revoked.has(std::vector<Grant>{{.id = idOf(0)}}));
  EXPECT_TRUE(revoked.add(idOf(1'000'000), std::nullopt, kNow + 9s));
}

}  // namespace
}  // namespace viaduct::agent
