// Cards with a grant, at an agent: what their holders see of one another, how a card ends, and what
// a bad card gets. tests/contract/contract_grants.cc has the bytes, for every backend.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/session/grants.h"
#include "agent/session/messages.h"
#include "base/movable_clock.h"
#include "move/staging/staging_message.h"
#include "support/agent_of_a_clock.h"
#include "support/lying_peer.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using agent::FrameType;

constexpr std::uint64_t kBytes = 64 << 10;

class Cards : public ::testing::Test {
 protected:
  Cards() : owner_(open("owner")), holder_(open("holder")) {
    for (const char* label : {"a/1", "b/1"})
      pins_.push_back(*owner_.allocate(kBytes, {.label = label}));
  }
  Agent open(const std::string& name, std::vector<std::string> backends = {}) {
    Settings settings{
        .name = name, .backends = std::move(backends), .detect = 8h, .deadline = 20s, .grace = 60s};
    auto opened = agent::AgentOfAClock::open(std::move(settings), clock_);
    EXPECT_TRUE(opened) << opened.error().text();
    return *std::move(opened);
  }
  static std::vector<std::string> labelsAt(const Peer& peer) {
    std::vector<std::string> out;
    for (const PinInfo& pin : peer.pins()) out.push_back(pin.label);
    std::ranges::sort(out);
    return out;
  }
  Peer connect(Agent& by, const Card& card) {
    auto peer = *by.connect(card);
    const Status ready = peer.ready(20s);
    EXPECT_TRUE(ready) << ready.error().text();
    return peer;
  }
  // Returns the reason why `by` is not let in.
  static std::string refusal(Agent& by, const Card& card) {
    const auto peer = by.connect(card);
    if (!peer) return peer.error().text();
    const Status ready = peer->ready(20s);
    if (ready) return "";
    EXPECT_EQ(ready.error().code, Code::kDenied) << ready.error().text();
    EXPECT_FALSE(ready.error().remedy.empty());
    peer->forget();
    return ready.error().text();
  }
  std::string where() const { return owner_.card().addresses.at(0); }
  std::chrono::system_clock::time_point in(std::chrono::seconds time) const {
    return std::chrono::system_clock::now() +
           std::chrono::duration_cast<std::chrono::system_clock::duration>(clock_.ahead()) + time;
  }

  base::MovableClock clock_;
  Agent owner_, holder_;
  std::vector<Pin> pins_;
};

TEST_F(Cards, HoldersOfDifferentCardsSeeNothingOfOneAnother) {
  Agent other = open("other");
  const Peer a = connect(holder_, *owner_.card({.pins = "a/*"}));
  const Peer b = connect(other, *owner_.card({.pins = "b/*"}));
  EXPECT_EQ(labelsAt(a), std::vector<std::string>{"a/1"});
  EXPECT_EQ(labelsAt(b), std::vector<std::string>{"b/1"});
  const auto late = owner_.allocate(kBytes, {.label = "b/2"});
  ASSERT_TRUE(late && b.waitPin("b/2", 20s));
  EXPECT_EQ(labelsAt(a), std::vector<std::string>{"a/1"});
  EXPECT_EQ(holder_.peers().size(), 1U);
  ASSERT_TRUE(owner_.peer("holder")->note("for a"));
  ASSERT_TRUE(owner_.peer("other")->note("for b"));
  const auto text = [](const Result<Note>& note) {
    return note ? std::string(reinterpret_cast<const char*>(note->bytes.data()), note->bytes.size())
                : note.error().text();
  };
  EXPECT_EQ(text(holder_.waitNote(20s)), "for a");
  EXPECT_EQ(text(other.waitNote(20s)), "for b");
  EXPECT_FALSE(holder_.takeNote() || other.takeNote());
  EXPECT_EQ(owner_.card({.pins = "a/*"})->pins.size(), 1U) << "nor in a card";
}

TEST_F(Cards, AHolderDoesNotTakeTheNameOfAnother) {
  const Peer a = connect(holder_, *owner_.card({.pins = "a/*"}));
  Agent thief = open("holder");
  const auto peer = thief.connect(*owner_.card({.pins = "b/*"}));
  ASSERT_TRUE(peer);
  EXPECT_FALSE(peer->ready(200ms));
  EXPECT_EQ(a.state(), PeerState::kReady);
  EXPECT_EQ(a.epoch(), 1U);
}

TEST_F(Cards, AreNarrowedWithoutTheOwner) {
  const Card wide = *owner_.card({.until = in(100s)});
  const auto narrow = wide.narrow({.pins = "a/*", .access = CardAccess::kRead, .name = "holder"});
  ASSERT_TRUE(narrow) << narrow.error().text();
  EXPECT_EQ(narrow->pins.size(), 1U) << "the card names no other pin";
  const auto carried = Card::decode(narrow->encode());
  ASSERT_TRUE(carried) << carried.error().text();
  const Peer peer = connect(holder_, *carried);
  EXPECT_EQ(labelsAt(peer), std::vector<std::string>{"a/1"});
  EXPECT_EQ(peer.pins().at(0).access, MemoryAccess::kReadOnly);
}

TEST_F(Cards, RevokingEndsAllThatWereNarrowedFromIt) {
  const Card root = *owner_.card({});
  const Card child = *root.narrow({.pins = "a/*"}), grandchild = *child.narrow({});
  const Card sibling = *root.narrow({.pins = "b/*"});
  Agent other = open("other"), third = open("third");
  const Peer below = connect(holder_, grandchild), beside = connect(other, sibling);
  const Peer full = connect(third, owner_.card());
  ASSERT_TRUE(owner_.revokeCard(*child.id()));
  EXPECT_NE(owner_.peer("holder")->state(), PeerState::kReady) << "when revokeCard() has returned";
  ASSERT_TRUE(below.over(1, 20s));
  const Status why = below.ready(20s);
  ASSERT_FALSE(why);
  EXPECT_EQ(why.error().code, Code::kDenied);
  EXPECT_TRUE(has(why.error().text(), "the Card has been revoked")) << why.error().text();
  below.forget();
  EXPECT_TRUE(has(refusal(holder_, child), "revoked"));
  EXPECT_TRUE(has(refusal(holder_, *child.narrow({.pins = "a/1"})), "revoked"));
  EXPECT_EQ(beside.state(), PeerState::kReady);
  ASSERT_TRUE(owner_.revokeCards());
  ASSERT_TRUE(beside.over(1, 20s));
  EXPECT_EQ(full.state(), PeerState::kReady);
  EXPECT_TRUE(has(refusal(other, sibling), "revoked all of its Cards"));
  connect(holder_, *owner_.card({.pins = "b/*"}));
}

TEST_F(Cards, EndWithTheirTimeByTheClockOfTheOwner) {
  const Card card = *owner_.card({.pins = "a/*", .until = in(1h)});
  const Card longer = *owner_.card({.pins = "a/*", .until = in(3h)});
  Agent other = open("other");
  const Peer peer = connect(holder_, card), stays = connect(other, longer);
  clock_.advance(1h + 1s);
  ASSERT_TRUE(peer.over(1, 20s));
  const Status why = peer.ready(20s);
  ASSERT_FALSE(why);
  EXPECT_EQ(why.error().code, Code::kDenied);
  EXPECT_TRUE(has(why.error().text(), "the Card has expired")) << why.error().text();
  peer.forget();
  EXPECT_TRUE(has(refusal(holder_, card), "the Card has expired"));
  EXPECT_EQ(stays.state(), PeerState::kReady);
  EXPECT_TRUE(has(owner_.card({.until = in(-1s)}).error().text(), "is over"));
}

// A timer runs for a day at most, because the time of day may be set meanwhile.
TEST_F(Cards, EndWithTheirTimeAfterSeveralDays) {
  const Peer peer = connect(holder_, *owner_.card({.pins = "a/*", .until = in(50h)}));
  for (int day = 0; day < 2; ++day) {
    clock_.advance(24h + 1min);
    for (int round = 0; round < 2; ++round) {  // the owner has run its timers
      ASSERT_TRUE(peer.note("here"));
      ASSERT_TRUE(owner_.waitNote(20s));
    }
    ASSERT_EQ(peer.state(), PeerState::kReady) << day;
  }
  clock_.advance(2h);
  ASSERT_TRUE(peer.over(1, 20s));
  EXPECT_EQ(peer.ready(20s).error().code, Code::kDenied);
}

TEST_F(Cards, ABadCardIsRefusedWithItsReason) {
  const Card good = *owner_.card({.pins = "a/*", .access = CardAccess::kRead});
  Card forged = good;
  forged.grants[0].access = CardAccess::kBoth;
  EXPECT_TRUE(has(refusal(holder_, forged), "the Card was changed"));
  forged = *good.narrow({.pins = "a/1"});
  forged.grants.pop_back();
  EXPECT_TRUE(has(refusal(holder_, forged), "the Card was changed")) << "a restriction was dropped";
  forged = good;
  forged.grants.clear();
  EXPECT_TRUE(has(refusal(holder_, forged), "the secret does not match"));
  Agent stranger = open("stranger");
  Card foreign = *stranger.card({.pins = "a/*"});
  foreign.name = "owner";
  foreign.addresses = good.addresses;
  foreign.unix_name = good.unix_name;
  EXPECT_TRUE(has(refusal(holder_, foreign), "belongs to another agent"));
  EXPECT_TRUE(has(refusal(holder_, *owner_.card({.name = "decode-1"})),
                  "the Card is for agent decode-1, not holder"));
  // This holder narrows the card without the checks of Card::narrow.
  Card nothing = good;
  nothing.grants.push_back({.pins = "b/*", .id = {9}});
  nothing.secret =
      *agent::narrowedKey(good.secret, agent::claimOf(std::span(nothing.grants).last(1)));
  EXPECT_TRUE(has(refusal(holder_, nothing), "narrowed too far"));
  connect(holder_, good);
}

TEST_F(Cards, AnUnknownRestrictionIsProvedAndRefused) {
  const Card good = *owner_.card({.pins = "a/*"});
  const base::Bytes unknown{std::byte{77}, std::byte{1}, std::byte{5}};
  auto claim = agent::claimOf(good.grants);
  claim.insert(claim.end(), unknown.begin(), unknown.end());
  auto peer = LyingPeer::prove(where(), *agent::narrowedKey(good.secret, unknown), claim);
  ASSERT_TRUE(peer) << peer.error().text();
  EXPECT_FALSE(peer->introduce("liar"));
  ASSERT_TRUE(peer->refusal());
  EXPECT_TRUE(has(peer->refusal()->text(), "a restriction of kind 77")) << peer->refusal()->text();
  // The full card's secret does not prove the claim with the restriction.
  EXPECT_FALSE(LyingPeer::prove(where(), good.secret, claim));
}

// Counts the frames up to the announced pins, with the plain card and with a card that was narrowed
// twice. The claim travels in the first frame, so the counts are equal.
TEST_F(Cards, ANarrowedCardCostsNoFurtherFrame) {
  const auto framesWith = [&](const std::string& name, const Card& card) {
    auto holder = LyingPeer::meet(where(), card.secret, name, agent::claimOf(card.grants));
    EXPECT_TRUE(holder) << holder.error().text();
    for (auto frame = holder->next(); frame; frame = holder->next())
      if (agent::typeOf(*frame) == FrameType::kSynced) break;
    return holder->frames();
  };
  const auto plain = framesWith("full", owner_.card());
  EXPECT_EQ(plain, framesWith("less", *owner_.card({})->narrow({})->narrow({.pins = "*/1"})));
  EXPECT_EQ(plain.first, 3U) << "open, proof, hello";
  EXPECT_EQ(plain.second, 7U) << "challenge, confirm, hello, accept, two pins, synced";
}

TEST_F(Cards, ARevokedCardIsRefusedWithinASecond) {
  Duration longest{};
  for (std::uint64_t round = 1; round <= 10; ++round) {
    const Card card = *owner_.card({.pins = "a/*"});
    const Peer peer = connect(holder_, card);
    const auto start = Clock::now();
    ASSERT_TRUE(owner_.revokeCard(card));
    ASSERT_TRUE(peer.over(peer.epoch(), 20s));
    const Status why = peer.ready(20s);
    longest = std::max<Duration>(longest, Clock::now() - start);
    ASSERT_FALSE(why);
    EXPECT_TRUE(has(why.error().text(), "the Card has been revoked")) << why.error().text();
    peer.forget();
  }
  EXPECT_LT(longest, 1s);
  std::printf("revoked until refused: %.2f ms at most\n",
              std::chrono::duration<double, std::milli>(longest).count());
}

// The test reads all frames that a limited peer gets until "synced".
TEST_F(Cards, ALyingHolderIsToldOfNoOtherPin) {
  const Card card = *owner_.card({.pins = "a/*", .access = CardAccess::kRead});
  auto liar = LyingPeer::meet(where(), card.secret, "liar", agent::claimOf(card.grants));
  ASSERT_TRUE(liar) << liar.error().text();
  std::vector<agent::PinMessage> told;
  for (;;) {
    const auto frame = liar->next();
    ASSERT_TRUE(frame) << frame.error().text();
    if (agent::typeOf(*frame) == FrameType::kSynced) break;
    if (agent::typeOf(*frame) == FrameType::kPin)
      told.push_back(*base::decode<agent::PinMessage>(frame->payload));
  }
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].info.label, "a/1");
  EXPECT_EQ(told[0].info.access, MemoryAccess::kReadOnly);
  for (const auto& key : told[0].keys) EXPECT_NE(key.backend, "local");
}

// A message about the released pin would tell the holder the number of the pin's slot.
TEST_F(Cards, ALyingHolderIsNotToldThatAnotherPinIsReleased) {
  const Card card = *owner_.card({.pins = "a/*"});
  auto liar = LyingPeer::meet(where(), card.secret, "liar", agent::claimOf(card.grants));
  ASSERT_TRUE(liar) << liar.error().text();
  const std::uint32_t granted = pins_[0].info().slot;
  ASSERT_TRUE(pins_[1].release());
  ASSERT_TRUE(pins_[0].release());
  for (;;) {
    const auto frame = liar->next();
    ASSERT_TRUE(frame) << frame.error().text();
    if (agent::typeOf(*frame) != FrameType::kUnpin) continue;
    EXPECT_EQ(base::decode<agent::UnpinMessage>(frame->payload)->slot, granted);
    break;
  }
}

// A lying holder names each slot and guesses each generation, and asks the owner to copy.
class LyingHolder : public Cards, public ::testing::WithParamInterface<CardAccess> {};
INSTANTIATE_TEST_SUITE_P(May, LyingHolder, ::testing::Values(CardAccess::kRead, CardAccess::kWrite),
                         [](const auto& access) {
                           return access.param == CardAccess::kRead ? "Read" : "Write";
                         });

TEST_P(LyingHolder, GetsNoCopyOfAnotherPin) {
  const Card card = *owner_.card({.pins = "a/*", .access = GetParam()});
  auto liar = LyingPeer::meet(where(), card.secret, "liar", agent::claimOf(card.grants));
  ASSERT_TRUE(liar) << liar.error().text();
  liar->sync();
  const auto ask = [&](const move::StagingMessage& message) {
    const auto bytes = move::encode(message);
    liar->send(FrameType::kBackend,
               base::encode(agent::BackendMessage{.backend = "staged", .bytes = bytes}));
  };
  // The next staging message of the owner.
  const auto answer = [&]() -> Result<move::StagingMessage> {
    for (;;) {
      VIADUCT_TRY(const auto frame, liar->next());
      if (agent::typeOf(frame) != FrameType::kBackend) continue;
      VIADUCT_TRY(const auto message, base::decode<agent::BackendMessage>(frame.payload));
      if (message.backend == "staged") return move::decodeStaging(message.bytes);
    }
  };
  ask(move::RingRequest{});
  const auto ring = answer();
  ASSERT_TRUE(ring) << ring.error().text();
  ASSERT_FALSE(std::get<move::RingAnswer>(*ring).error);
  int copied = 0;
  std::set<std::string> refusals;
  for (const bool store : {false, true})
    for (std::uint64_t generation = 1; generation <= 32; ++generation)
      for (const Pin& pin : pins_) {
        ask(move::StorageRequest{.store = store,
                                 .pieces = {{.pin = pin.info().slot,
                                             .address = pin.info().address,
                                             .bytes = 4096,
                                             .generation = generation}}});
        const auto said = answer();
        ASSERT_TRUE(said) << said.error().text();
        const auto& error = std::get<move::StorageAnswer>(*said).error;
        const bool granted = &pin == &pins_[0] && store == (GetParam() == CardAccess::kWrite);
        if (!error) {
          EXPECT_TRUE(granted) << pin.info().label << (store ? " written" : " read");
          ++copied;
          continue;
        }
        EXPECT_EQ(error->code, Code::kDenied) << error->text();
        if (&pin == &pins_[1]) refusals.insert(error->text());
      }
  EXPECT_EQ(copied, 1) << "the granted pin, under its true generation";
  EXPECT_EQ(refusals.size(), 1U) << "the true generation is refused like a wrong one";
}

TEST_F(Cards, ALeaseIsLentWithinTheGrant) {
  connect(holder_, *owner_.card({.pins = "a/*", .access = CardAccess::kRead}));
  const Peer holder = *owner_.peer("holder");
  ASSERT_TRUE(holder.ready(20s));
  const auto lend = [&](const Pin& pin, MemoryAccess access) {
    const Selection all{*Blocks::strided({.base = pin.info().address, .bytes = kBytes, .count = 1}),
                        {}};
    return owner_.lease(holder, all, {.access = access});
  };
  EXPECT_TRUE(lend(pins_[0], MemoryAccess::kReadOnly));
  EXPECT_EQ(lend(pins_[0], MemoryAccess::kWriteOnly).error().code, Code::kInvalid);
  for (const auto& [pin, access] :
       {std::pair(&pins_[0], MemoryAccess::kReadWrite), {&pins_[1], MemoryAccess::kReadOnly}}) {
    const auto refused = lend(*pin, access);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kDenied);
    EXPECT_TRUE(has(refused.error().text(), "pins like a/*, reading")) << refused.error().text();
  }
}

// The holder limits, with a grant of its own, what the owner may reach at the holder.
TEST_F(Cards, TheDialerLimitsTheListener) {
  const auto open = holder_.allocate(kBytes, {.label = "open/1"});
  const auto mine = holder_.allocate(kBytes, {.label = "mine/1"});
  ASSERT_TRUE(open && mine);
  const auto peer = holder_.connect(owner_.card(), Grant{.pins = "open/*"});
  ASSERT_TRUE(peer && peer->ready(20s));
  const Peer back = *owner_.peer("holder");
  ASSERT_TRUE(back.waitPin("open/1", 20s));
  EXPECT_EQ(labelsAt(back), std::vector<std::string>{"open/1"});
  EXPECT_EQ(labelsAt(*peer), (std::vector<std::string>{"a/1", "b/1"}));
}

TEST_F(Cards, AnAgentThatAdmitsEverybodyLimitsNobody) {
  const auto agent = Agent::open(Settings{.name = "open", .insecure = true});
  ASSERT_TRUE(agent);
  EXPECT_TRUE(has(agent->card({.pins = "a/*"}).error().text(), "VIADUCT_INSECURE"));
}

TEST_F(Cards, RevokingAllMakesRoomForRevokedIds) {
  CardId id{};
  Status revoked = owner_.revokeCard(id);
  for (std::uint32_t i = 1; revoked && i < 1'000'000; ++i) {
    std::memcpy(id.data(), &i, sizeof i);
    revoked = owner_.revokeCard(id);
  }
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().code, Code::kExhausted);
  EXPECT_TRUE(has(revoked.error().text(), "call revokeCards()")) << revoked.error().text();
  ASSERT_TRUE(owner_.revokeCards());
  EXPECT_TRUE(owner_.revokeCard(id));
}

TEST_F(Cards, ACardThatGrantsAllCannotBeRevoked) {
  const Status refused = owner_.revokeCard(owner_.card());
  ASSERT_FALSE(refused);
  EXPECT_TRUE(has(refused.error().text(), "grants all"));
}

}  // namespace
}  // namespace viaduct::testing
