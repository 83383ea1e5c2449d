// The grants of a card: patterns, claims as bytes, keys, narrowing without the owner, and what the
// owner refuses.
#include "agent/session/grants.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

const WallTime kNow = WallTime(std::chrono::milliseconds(1'800'000'000'000));
constexpr base::Key kRoot{1, 2, 3};

CardId idOf(std::uint8_t number) { return {number}; }

// A card with this grant, as the owner makes it.
Card ownersCard(Grant grant) {
  grant.id = idOf(1);
  Card card{.name = "owner", .grants = {std::move(grant)}};
  card.secret = *keyOfClaim(kRoot, claimOf(card.grants));
  return card;
}

std::string detail(const Result<Card>& card) { return card ? "" : card.error().text(); }
std::string detail(const Status& status) { return status ? "" : status.error().text(); }

TEST(CardPattern, StarsStandForAnyText) {
  for (const auto& [pattern, label] :
       std::vector<std::pair<std::string, std::string>>{{"*", ""},
                                                        {"*", "kv/1"},
                                                        {"kv/*", "kv/"},
                                                        {"kv/*", "kv/a/b"},
                                                        {"*/1", "kv/1"},
                                                        {"k*v*1", "kavb1"},
                                                        {"a**b", "ab"},
                                                        {"a*b*c", "abbc"},
                                                        {"kv", "kv"}})
    EXPECT_TRUE(matches(pattern, label)) << pattern << " " << label;
  for (const auto& [pattern, label] :
       std::vector<std::pair<std::string, std::string>>{{"kv/*", "kv"},
                                                        {"kv/*", "xkv/1"},
                                                        {"kv", "kv/1"},
                                                        {"*/1", "kv/12"},
                                                        {"a*b", "acbc"},
                                                        {"", "a"},
                                                        {"a/*", "b/1"}})
    EXPECT_FALSE(matches(pattern, label)) << pattern << " " << label;
}

TEST(Grants, AllHaveToAllow) {
  const std::vector<Grant> grants{{.pins = "kv/*"}, {.pins = "*/7", .access = CardAccess::kRead}};
  EXPECT_EQ(rightTo("kv/7", grants), (core::PinRight{.read = true}));
  EXPECT_FALSE(rightTo("kv/8", grants).any());
  EXPECT_FALSE(rightTo("w/7", grants).any());
  EXPECT_EQ(rightTo("w/7", {}), (core::PinRight{.read = true, .write = true}));
}

TEST(Grants, EndWithTheFirstOfThem) {
  const Grant early{.until = kNow}, late{.until = kNow + 1s};
  EXPECT_EQ(endOf(std::vector<Grant>{early, late, {}}), kNow);
  EXPECT_EQ(endOf(std::vector<Grant>{late, early}), kNow);
  EXPECT_FALSE(endOf(std::vector<Grant>{{}}));
}

TEST(Grants, APinKeepsTheAccessThatIsLeft) {
  const std::vector<Grant> reads{{.access = CardAccess::kRead}};
  const std::vector<Grant> writes{{.access = CardAccess::kWrite}};
  PinInfo pin{.label = "kv"};
  EXPECT_TRUE(limit(pin, writes));
  EXPECT_EQ(pin.access, MemoryAccess::kWriteOnly);
  pin.access = MemoryAccess::kReadOnly;
  EXPECT_FALSE(limit(pin, writes)) << "the owner does not let it be written";
  pin.access = MemoryAccess::kReadWrite;
  EXPECT_TRUE(limit(pin, reads));
  EXPECT_EQ(pin.access, MemoryAccess::kReadOnly);
}

TEST(CardClaim, IsTheSameAfterDecoding) {
  const std::vector<Grant> grants{
      {.pins = "kv/*", .access = CardAccess::kRead, .until = kNow, .name = "b", .id = idOf(1)},
      {.id = idOf(2)}};
  const auto claim = claimOf(grants);
  const auto again = decodeClaim(claim);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(claimOf(*again), claim);
  EXPECT_EQ(again->at(0).pins, "kv/*");
  EXPECT_EQ(again->at(0).until, kNow);
  EXPECT_EQ(again->at(1).access, CardAccess::kBoth);
}

TEST(CardClaim, HasOneFormAndNoUnknownRestriction) {
  const auto id = claimOf(std::vector<Grant>{{}});
  const auto with = [&](std::initializer_list<int> more) {
    auto out = id;
    for (const int byte : more) out.push_back(static_cast<std::byte>(byte));
    return out;
  };
  const auto refusal = [](const base::Bytes& claim) { return decodeClaim(claim).error(); };
  EXPECT_EQ(refusal(with({9, 0})).code, Code::kUnsupported);
  EXPECT_NE(refusal(with({9, 0})).text().find("kind 9"), std::string::npos);
  for (const auto& bytes :
       {with({2, 1, '*'}), with({2, 0}), with({3, 1, 3}), with({3, 1, 0}), with({3, 2, 1, 1}),
        with({3, 1, 1, 2, 1, 'a'}), with({2, 1, 'a', 2, 1, 'a'}), with({2, 1, '\n'}),
        with({4, 1, 1}), with({2, 5, 'a'}), with({2})})
    EXPECT_EQ(refusal(bytes).code, Code::kProtocol);
  EXPECT_EQ(refusal({std::byte{3}, std::byte{1}, std::byte{1}}).code, Code::kProtocol) << "no id";
  EXPECT_EQ(refusal(base::Bytes(kMaxClaimBytes + 1)).code, Code::kProtocol);
  EXPECT_EQ(refusal(claimOf(std::vector<Grant>(kMaxGrants + 1))).code, Code::kProtocol);
}

// The owner makes no list of cards: it computes the secret from what the holder claims.
TEST(CardKey, OfANarrowedCardIsThatOfItsClaim) {
  const Card card = ownersCard({.pins = "kv/*"});
  const auto less = card.narrow({.pins = "kv/7", .access = CardAccess::kRead});
  ASSERT_TRUE(less) << less.error().text();
  const auto least = less->narrow({.name = "b"});
  ASSERT_TRUE(least) << least.error().text();
  EXPECT_EQ(keyOfClaim(kRoot, claimOf(least->grants)), least->secret);
  EXPECT_TRUE(hasId(least->grants, *card.id()));
  EXPECT_TRUE(hasId(least->grants, *less->id()));
  EXPECT_NE(less->id(), least->id());
}

TEST(CardKey, OfAForgedClaimIsAnother) {
  const Card card = ownersCard({.pins = "kv/*", .access = CardAccess::kRead});
  const Card less = *card.narrow({.pins = "kv/7"});
  const auto forged = [&](auto change) {
    auto grants = less.grants;
    change(grants);
    return keyOfClaim(kRoot, claimOf(grants)) != less.secret;
  };
  EXPECT_TRUE(forged([](auto& g) { g.pop_back(); })) << "the holder drops the narrowing";
  EXPECT_TRUE(forged([](auto& g) { g[0].pins = "*"; }));
  EXPECT_TRUE(forged([](auto& g) { g[0].access = CardAccess::kBoth; }));
  EXPECT_TRUE(forged([](auto& g) { g[0].until = kNow; }));
  EXPECT_TRUE(forged([](auto& g) { g[1].id = idOf(9); })) << "an id that is not revoked";
  EXPECT_TRUE(forged([](auto& g) { std::swap(g[0], g[1]); }));
  EXPECT_NE(keyOfClaim({7}, claimOf(less.grants)), less.secret) << "the card of another agent";
  EXPECT_FALSE(keyOfClaim(kRoot, {})) << "an empty claim is the agent's own secret";
  EXPECT_FALSE(keyOfClaim(kRoot, base::ByteSpan(claimOf(less.grants)).first(20)));
}

// A dialer that has proved nothing makes the owner compute no more than the keys of a longest card.
TEST(CardKey, OfAClaimWithTooManyRestrictionsIsNotComputed) {
  auto claim = claimOf(std::vector<Grant>{{}});
  for (std::size_t i = 1; i < 5 * kMaxGrants; ++i) claim.resize(claim.size() + 2, std::byte{9});
  for (std::size_t at = sizeof(CardId) + 3; at < claim.size(); at += 2) claim[at] = std::byte{0};
  EXPECT_TRUE(keyOfClaim(kRoot, claim));
  claim.push_back(std::byte{9});
  claim.push_back(std::byte{0});
  EXPECT_FALSE(keyOfClaim(kRoot, claim));
}

TEST(CardNarrow, NeverGrantsMoreAndNeverNothing) {
  const Card card =
      ownersCard({.pins = "kv/*", .access = CardAccess::kRead, .until = kNow, .name = "b"});
  EXPECT_NE(detail(card.narrow({.until = kNow + 1s})).find("before"), std::string::npos);
  EXPECT_NE(detail(card.narrow({.pins = "w/*"})).find("no label matches both kv/* and w/*"),
            std::string::npos);
  EXPECT_NE(detail(card.narrow({.access = CardAccess::kWrite})).find("neither reading nor writing"),
            std::string::npos);
  EXPECT_NE(detail(card.narrow({.name = "c"})).find("no agent is called both b and c"),
            std::string::npos);
  EXPECT_NE(detail(card.narrow({.pins = ""})).find("pattern"), std::string::npos);
  EXPECT_NE(detail(card.narrow({.until = WallTime{} + 1s})).find("is over"), std::string::npos);
  EXPECT_NE(detail(Card{}.narrow({})).find("grants all"), std::string::npos);
  const auto wider = card.narrow({.pins = "*"});
  ASSERT_TRUE(wider) << "which leaves all as it is";
  EXPECT_FALSE(rightTo("w/1", wider->grants).any());
  EXPECT_FALSE(rightTo("kv/1", wider->grants).write);
}

TEST(CardNarrow, EndsAtTheLimitOfGrants) {
  Result<Card> card = ownersCard({});
  std::size_t grants = 1;
  for (auto less = card->narrow({}); less; less = card->narrow({})) {
    card = std::move(less);
    ++grants;
  }
  EXPECT_EQ(grants, kMaxGrants);
  EXPECT_EQ(card->narrow({}).error().code, Code::kExhausted);
}

TEST(CardUse, IsRefusedWithItsReason) {
  const std::vector<Grant> grants{{.pins = "kv/*", .until = kNow, .name = "b"}};
  EXPECT_TRUE(mayUse(grants, "b", kNow - 1ms));
  EXPECT_NE(detail(mayUse(grants, "b", kNow)).find("has expired"), std::string::npos);
  EXPECT_NE(detail(mayUse(grants, "c", kNow - 1s)).find("for agent b, not c"), std::string::npos);
  // A holder that ignores the checks of Card::narrow can make such a card.
  const std::vector<Grant> nothing{{.pins = "kv/*"}, {.pins = "w/*"}};
  EXPECT_NE(detail(mayUse(nothing, "b", kNow)).find("narrowed too far"), std::string::npos);
}

TEST(CardText, SaysWhatItGrants) {
  EXPECT_EQ(Card{}.grantText(), "all pins, reading and writing, as long as the agent lives");
  EXPECT_EQ(textOf(std::vector<Grant>{{.pins = "kv/*", .until = kNow, .name = "b"},
                                      {.access = CardAccess::kRead}}),
            "pins like kv/*, reading, until 2027-01-15 08:00:00 UTC, for agent b");
  EXPECT_EQ(textOf(std::vector<Grant>{{}, {.pins = "a"}, {.pins = "*a"}}),
            "pins like a and *a, reading and writing");
  EXPECT_EQ(textOf(std::vector<Grant>{{.access = CardAccess::kRead}}), "all pins, reading");
}

TEST(CardIdTextTest, IsReadBack) {
  const CardId id{0x01, 0xab, 0xff};
  const auto again = cardIdFrom(cardIdText(id));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, id);
  for (const std::string& bad :
       std::vector<std::string>{"", "01", "zz" + std::string(30, '0'), std::string(34, '0')})
    EXPECT_FALSE(cardIdFrom(bad)) << bad;
}

}  // namespace
}  // namespace viaduct::agent
