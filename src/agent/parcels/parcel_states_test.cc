// The states of parcels: single rules, and random worlds of an owner, holders and consumers whose
// messages, losses and cancellations come in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/parcels/parcel_owner.h"
#include "agent/parcels/parcel_taker.h"

namespace viaduct::agent {
namespace {

const Error kGone{.code = Code::kPeerLost, .operation = "session", .detail = "gone"};
const Error kStop{.code = Code::kCancelled, .operation = "test", .detail = "stopped"};

// One owner, its consumers, and the leases that holders give them.
class ParcelWorld {
 public:
  explicit ParcelWorld(std::uint64_t seed) : random_(seed) {}

  struct SimulatedFetch {
    std::uint64_t session = 0;
    std::string group = {};
    std::uint32_t size = 1, rank = 0;
    bool lost = false;
    std::unique_ptr<ParcelTaker> taker = {};
    std::map<ParcelPart, Holder> reading = {};
    std::set<ParcelPart> cancelled = {};
    std::optional<ParcelEnd> end = {};
    int ends = 0;
  };
  struct SimulatedLease {
    TakerId taker = {};
    ParcelPart part = {};
    Holder holder = 0;
    std::uint64_t parcel = 0;
    bool cut = false, borrowed = false;
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

  std::uint64_t beginSession() {
    to_owner_[++last_session_];
    to_consumer_[last_session_];
    return last_session_;
  }

  SimulatedFetch& fetch(std::uint64_t session, WantMessage want) {
    want.number = ++numbers_[session];
    auto fetch = std::make_unique<SimulatedFetch>();
    fetch->session = session;
    fetch->group = want.group;
    fetch->size = want.size;
    fetch->rank = want.rank;
    fetch->taker = std::make_unique<ParcelTaker>(std::move(want));
    SimulatedFetch& out = *fetch;
    fetches_.push_back(std::move(fetch));
    by_id_[{session, out.taker->want().number}] = &out;
    act(out);
    return out;
  }

  // The consumer's actions.
  void act(SimulatedFetch& fetch) {
    for (TakerAction& action : fetch.taker->takeActions()) {
      if (auto* const tell = std::get_if<TellOwner>(&action)) {
        if (!fetch.lost) to_owner_[fetch.session].push_back(std::move(tell->message));
      } else if (auto* const read = std::get_if<ReadPart>(&action)) {
        const ParcelPart part = read->ready.part;
        fetch.reading[part] = 0;
        if (SimulatedLease* const lease = leaseOf(idOf(fetch), part)) lease->borrowed = true;
      } else if (std::get_if<CancelReads>(&action) != nullptr) {
        for (const auto& [part, holder] : fetch.reading) fetch.cancelled.insert(part);
      } else {
        fetch.end = std::get<FetchOver>(action).end;
        ++fetch.ends;
        EXPECT_TRUE(fetch.reading.empty()) << "it ended while it read";
      }
    }
  }

  // The owner's actions.
  void act() {
    for (OwnerAction& action : owner.takeActions()) {
      if (auto* const told = std::get_if<TellTaker>(&action)) {
        if (to_consumer_.contains(told->session))
          to_consumer_[told->session].push_back(std::move(told->message));
      } else if (auto* const lend = std::get_if<LendPart>(&action)) {
        EXPECT_FALSE(over_.contains(lend->parcel)) << "a part was lent after its parcel's end";
        to_holders_.emplace_back(*lend);
      } else if (auto* const cut = std::get_if<CutTaker>(&action)) {
        to_holders_.emplace_back(*cut);
      } else if (auto* const group = std::get_if<GroupOver>(&action)) {
        if (!group->group.empty()) counted_[group->group] = group->end.outcome;
        if (group->end.outcome == ParcelOutcome::kWhole) {
          EXPECT_TRUE(owner.missing(group->parcel).empty())
              << "a parcel of which parts are missing";
        }
      } else {
        const auto& parcel = std::get<ParcelOver>(action);
        EXPECT_TRUE(over_.insert(parcel.parcel).second) << "a parcel ended twice";
        for (const SimulatedLease& lease : leases_)
          EXPECT_TRUE(lease.parcel != parcel.parcel) << "a parcel ended while it was lent";
      }
    }
  }

  static TakerId idOf(const SimulatedFetch& fetch) {
    return {fetch.session, fetch.taker->want().number};
  }
  SimulatedLease* leaseOf(TakerId taker, ParcelPart part) {
    const auto found = std::ranges::find_if(leases_, [&](const SimulatedLease& lease) {
      return lease.taker == taker && lease.part == part;
    });
    return found == leases_.end() ? nullptr : &*found;
  }
  void dropLease(TakerId taker, ParcelPart part) {
    std::erase_if(leases_, [&](const SimulatedLease& lease) {
      return lease.taker == taker && lease.part == part;
    });
    owner.leaseEnded(taker, part);
    act();
  }

  // A holder does what the owner asks: it lends, or cannot, or ends leases.
  bool askOneHolder(std::uint64_t failing = 2) {
    if (to_holders_.empty()) return false;
    const auto asked = std::move(to_holders_.front());
    to_holders_.pop_front();
    if (const auto* const cut = std::get_if<CutTaker>(&asked)) {
      for (SimulatedLease& lease : leases_)
        if (lease.taker == cut->taker && lease.holder == cut->holder) lease.cut = true;
      return true;
    }
    const auto& lend = std::get<LendPart>(asked);
    const bool here = to_consumer_.contains(lend.taker.session);
    if (!holders_.contains(lend.holder)) return true;  // the owner knows that it is lost
    if (!here || chance(failing)) {
      owner.lendFailed(lend.taker, lend.part, kGone);
    } else {
      leases_.push_back({lend.taker, lend.part, lend.holder, lend.parcel});
      to_consumer_[lend.taker.session].push_back(
          ReadyMessage{.number = lend.taker.number, .part = lend.part});
    }
    act();
    return true;
  }

  bool deliverToOwner() {
    for (auto& [session, queue] : shuffled(to_owner_)) {
      if (queue->empty()) continue;
      ParcelMessage message = std::move(queue->front());
      queue->pop_front();
      if (auto* const want = std::get_if<WantMessage>(&message)) {
        const bool may = !chance(2);
        EXPECT_TRUE(
            owner.want(session, std::move(*want), may ? std::nullopt : std::optional(kStop)));
      } else {
        EXPECT_TRUE(owner.report(session, std::get<ReportMessage>(message)));
        if (chance(20)) {  // a repeated report
          EXPECT_TRUE(owner.report(session, std::get<ReportMessage>(message)));
        }
      }
      act();
      return true;
    }
    return false;
  }

  bool deliverToConsumer() {
    for (auto& [session, queue] : shuffled(to_consumer_)) {
      if (queue->empty()) continue;
      ParcelMessage message = std::move(queue->front());
      queue->pop_front();
      if (auto* const offer = std::get_if<OfferMessage>(&message)) {
        auto& fetch = *by_id_.at({session, offer->number});
        fetch.taker->offered(*offer);
        act(fetch);
      } else if (auto* const ready = std::get_if<ReadyMessage>(&message)) {
        auto& fetch = *by_id_.at({session, ready->number});
        fetch.taker->ready(std::move(*ready));
        act(fetch);
      } else {
        auto& verdict = std::get<VerdictMessage>(message);
        auto& fetch = *by_id_.at({session, verdict.number});
        fetch.taker->heardVerdict(std::move(verdict.end));
        act(fetch);
      }
      return true;
    }
    return false;
  }

  // Ends a read: with success only under a live lease, and with an error at times.
  bool endOneRead(std::uint64_t failing = 1) {
    std::vector<SimulatedFetch*> readers;
    for (const auto& fetch : fetches_)
      if (!fetch->reading.empty()) readers.push_back(fetch.get());
    if (readers.empty()) return false;
    SimulatedFetch& fetch = *readers[below(readers.size())];
    auto at = fetch.reading.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(fetch.reading.size())));
    const ParcelPart part = at->first;
    fetch.reading.erase(at);
    const SimulatedLease* const lease = leaseOf(idOf(fetch), part);
    const bool well =
        lease != nullptr && !lease->cut && !fetch.cancelled.contains(part) && !chance(failing);
    if (lease != nullptr) dropLease(idOf(fetch), part);
    fetch.taker->readEnded(part, well ? std::nullopt : std::optional(kStop));
    act(fetch);
    return true;
  }

  // A cut lease without a borrower ends.
  bool endCutLease() {
    for (const SimulatedLease& lease : leases_)
      if (lease.cut && !lease.borrowed) {
        // The ready message of this lease may still come, and finds no lease then.
        const SimulatedLease ended = lease;
        dropLease(ended.taker, ended.part);
        return true;
      }
    return false;
  }

  void loseSession(std::uint64_t session) {
    if (to_consumer_.erase(session) == 0) return;
    to_owner_.erase(session);
    for (const auto& fetch : fetches_) {
      if (fetch->session != session || fetch->ends != 0) continue;
      fetch->lost = true;
      const auto reading = std::exchange(fetch->reading, {});
      fetch->taker->ownerLost(kGone);
      for (const auto& [part, holder] : reading) fetch->taker->readEnded(part, kGone);
      act(*fetch);
    }
    std::vector<SimulatedLease> gone;
    for (const SimulatedLease& lease : leases_)
      if (lease.taker.session == session) gone.push_back(lease);
    owner.sessionOver(session, kGone);
    act();
    for (const SimulatedLease& lease : gone) dropLease(lease.taker, lease.part);
  }

  void loseHolder(Holder holder) {
    if (holder == 0 || holders_.erase(holder) == 0) return;
    std::erase_if(leases_, [&](const SimulatedLease& lease) { return lease.holder == holder; });
    owner.sessionOver(holder, kGone);
    act();
  }

  // Delivers until nothing is left to do.
  void settle() {
    while (deliverToOwner() || deliverToConsumer() || askOneHolder(0) || endOneRead(0) ||
           endCutLease()) {
    }
  }

  ParcelOwner owner;
  std::set<Holder> holders_{0};
  std::vector<std::unique_ptr<SimulatedFetch>> fetches_;
  std::set<std::uint64_t> over_;
  std::map<std::string, ParcelOutcome> counted_;  // of groups, at the owner
  std::vector<SimulatedLease> leases_;
  std::map<std::uint64_t, std::deque<ParcelMessage>> to_owner_, to_consumer_;

 private:
  // The queues of all sessions, beginning with any of them.
  static auto sessionsOf(auto& queues) {
    std::vector<std::pair<std::uint64_t, std::deque<ParcelMessage>*>> out;
    for (auto& [session, queue] : queues) out.emplace_back(session, &queue);
    return out;
  }
  std::vector<std::pair<std::uint64_t, std::deque<ParcelMessage>*>> shuffled(auto& queues) {
    auto out = sessionsOf(queues);
    if (!out.empty())
      std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(below(out.size())),
                  out.end());
    return out;
  }

  std::mt19937_64 random_;
  std::uint64_t last_session_ = 0;
  std::map<std::uint64_t, std::uint64_t> numbers_;
  std::map<TakerId, SimulatedFetch*> by_id_;
  std::deque<std::variant<LendPart, CutTaker>> to_holders_;
};

// Makes random steps: publishes, fetches, cancels, and loses sessions.
class RandomParcels : public ParcelWorld {
 public:
  using ParcelWorld::ParcelWorld;

  void publish() {
    ParcelSpec spec{.name = chance(70) ? "a" : "b",
                    .version = ++versions_,
                    .takers = static_cast<std::uint32_t>(below(4))};
    const auto parts = 1 + static_cast<std::uint32_t>(below(5));
    for (std::uint32_t i = 0; i < parts; ++i)
      spec.parts.push_back({.rank = i % 2, .component = i / 2});
    const auto published = owner.publish(spec);
    if (published) {
      live_.push_back(*published);
      EXPECT_EQ(*owner.publish(spec), *published) << "the same declaration is the same parcel";
      const Holder holder = chance(30) ? newHolder() : 0;
      if (holder != 0) owner.addHolder(*published, holder);
      holder_of_[*published] = holder;
    }
    act();
  }

  Holder newHolder() {
    if (holders_.size() == 1 || chance(30)) holders_.insert(++last_holder_);
    return last_holder_;
  }

  void readyOne() {
    std::erase_if(live_, [&](std::uint64_t id) { return over_.contains(id); });
    if (live_.empty()) return;
    const std::uint64_t id = live_[below(live_.size())];
    const auto missing = owner.missing(id);
    if (missing.empty()) return;
    const ParcelPart part = missing[below(missing.size())];
    const Holder of_parcel = holder_of_[id];
    const Holder holder = part.rank == 1 && holders_.contains(of_parcel) ? of_parcel : 0;
    if (owner.ready(id, part, holder)) {
      EXPECT_FALSE(owner.ready(id, part, holder)) << "a part is ready once";
    }
    act();
  }

  void endOneParcel() {
    if (live_.empty()) return;
    const bool expired = chance(50);
    owner.end(
        live_[below(live_.size())],
        {.outcome = expired ? ParcelOutcome::kExpired : ParcelOutcome::kCancelled, .why = kStop});
    act();
  }

  void fetchSome() {
    WantMessage want{.name = chance(70) ? "a" : "b", .version = below(versions_ + 2)};
    want.exact = chance(30);
    if (chance(40)) want.parts = {{.rank = 0, .component = 0}};  // may be all of the parts
    if (chance(50)) {
      want.group = "alone " + std::to_string(++last_group_);
      if (!sessions_.empty()) fetch(sessions_[below(sessions_.size())], want);
      return;
    }
    want.group = "group " + std::to_string(++last_group_);
    want.size = 2 + static_cast<std::uint32_t>(below(3));
    want.at_least = chance(30) ? want.size - 1 : 0;
    for (; want.rank < want.size; ++want.rank)  // at times one rank never asks
      if (!sessions_.empty() && !chance(5)) later_.push_back(want);
  }

  void fetchOneOfAGroup() {
    if (later_.empty() || sessions_.empty()) return;
    const std::size_t which = below(later_.size());
    fetch(sessions_[below(sessions_.size())], later_[which]);
    later_.erase(later_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void giveUpOne(std::uint64_t percent = 100) {
    for (const auto& fetch : fetches_)
      if (fetch->ends == 0 && chance(percent) && chance(10)) {
        fetch->taker->giveUp(chance(50) ? ParcelOutcome::kExpired : ParcelOutcome::kCancelled,
                             kStop);
        act(*fetch);
        return;
      }
  }

  void step() {
    switch (below(24)) {
      case 0:
        return publish();
      case 1:
        return fetchSome();
      case 2:
      case 3:
        return fetchOneOfAGroup();
      case 4:
      case 5:
      case 6:
        return readyOne();
      case 7:
        if (chance(20)) endOneParcel();
        return;
      case 8:
        if (chance(20)) giveUpOne();
        return;
      case 9:
        if (chance(10) && !sessions_.empty()) {
          const std::size_t which = below(sessions_.size());
          loseSession(sessions_[which]);
          sessions_[which] = beginSession();
        } else if (chance(5)) {
          loseHolder(last_holder_);
        }
        return;
      case 10:
      case 11:
      case 12:
        static_cast<void>(askOneHolder());
        return;
      case 13:
      case 14:
      case 15:
        static_cast<void>(endOneRead());
        return;
      case 16:
        static_cast<void>(endCutLease());
        return;
      case 17:
      case 18:
      case 19:
        static_cast<void>(deliverToOwner());
        return;
      default:
        static_cast<void>(deliverToConsumer());
    }
  }

  void run(int steps) {
    for (int i = 0; i < 4; ++i) sessions_.push_back(beginSession());
    for (int i = 0; i < steps; ++i) step();
    settle();
    for (int round = 0; owner.parcels() != 0; ++round) {  // ends the parcels that are left
      ASSERT_LT(round, 10) << "a parcel does not end";
      std::erase_if(live_, [&](std::uint64_t id) { return over_.contains(id); });
      ASSERT_FALSE(live_.empty());
      for (const std::uint64_t id : std::vector(live_)) {
        owner.end(id, {.outcome = ParcelOutcome::kCancelled, .why = kStop});
        act();
        settle();
      }
    }
    for (const auto& fetch : fetches_) {  // ends fetches that wait for a version or for ranks
      if (fetch->ends == 0) fetch->taker->giveUp(ParcelOutcome::kExpired, kStop);
      act(*fetch);
      settle();
    }
    alive_ = std::set(sessions_.begin(), sessions_.end());
    for (const std::uint64_t session : sessions_) loseSession(session);
    settle();
  }

  // Checks that each fetch has ended as the rules allow.
  void judge() {
    std::map<std::string, std::vector<const SimulatedFetch*>> groups;
    for (const auto& fetch : fetches_) {
      ASSERT_EQ(fetch->ends, 1) << "each fetch ends once";
      const ParcelEnd& end = *fetch->end;
      if (end.outcome == ParcelOutcome::kWhole) {
        ++whole_;
        EXPECT_TRUE(fetch->taker->missing().empty());
        EXPECT_EQ(end.version, fetch->taker->version());
        EXPECT_TRUE(std::ranges::find(end.ranks, fetch->rank) != end.ranks.end());
      } else {
        EXPECT_TRUE(end.why) << "an end that is not whole has a reason";
      }
      if (fetch->size > 1) groups[fetch->group].push_back(fetch.get());
      const auto counted = counted_.find(fetch->group);
      if (fetch->size == 1 && alive_.contains(fetch->session) && counted != counted_.end()) {
        EXPECT_EQ(counted->second, end.outcome) << fetch->group << ": the ends differ";
        ++alone_;
      }
    }
    for (const auto& [name, fetches] : groups) {
      const ParcelEnd* common = nullptr;
      for (const SimulatedFetch* fetch : fetches) {
        if (fetch->lost) continue;
        if (common == nullptr) common = &*fetch->end;
        EXPECT_EQ(fetch->end->outcome, common->outcome) << name;
        EXPECT_EQ(fetch->end->ranks, common->ranks) << name;
        if (common->outcome == ParcelOutcome::kWhole) {
          EXPECT_EQ(fetch->end->version, common->version) << name;
        }
      }
    }
    EXPECT_EQ(owner.parcels(), 0U);
    EXPECT_TRUE(leases_.empty());
  }
  int wholeFetches() const { return whole_; }
  int alone() const { return alone_; }

 private:
  std::vector<std::uint64_t> sessions_, live_;
  std::map<std::uint64_t, Holder> holder_of_;
  std::vector<WantMessage> later_;
  std::uint64_t versions_ = 0, last_group_ = 0, last_holder_ = 1000;
  std::set<std::uint64_t> alive_;  // sessions that were never lost
  int whole_ = 0, alone_ = 0;
};

TEST(ParcelStates, RandomWorldsEndOnceAndAlike) {
  int whole = 0, alone = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomParcels world(seed);
    world.run(600);
    world.judge();
    whole += world.wholeFetches();
    alone += world.alone();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(whole, 600) << "most worlds have fetches that end well";
  EXPECT_GT(alone, 600) << "most worlds have ranks without a group";
}

// The verdicts that the owner tells, by session.
std::map<std::uint64_t, ParcelEnd> verdictsOf(ParcelOwner& owner) {
  std::map<std::uint64_t, ParcelEnd> out;
  for (const OwnerAction& action : owner.takeActions())
    if (const auto* const tell = std::get_if<TellTaker>(&action))
      if (const auto* const verdict = std::get_if<VerdictMessage>(&tell->message))
        out[tell->session] = verdict->end;
  return out;
}

TEST(ParcelStates, ARefusedRankEndsItsGroupForRanksThatAskLater) {
  ParcelOwner owner;
  WantMessage want{.number = 1, .name = "a", .group = "g", .size = 2, .rank = 1};
  ASSERT_TRUE(owner.want(2, want, kStop));
  auto verdicts = verdictsOf(owner);
  EXPECT_EQ(verdicts.at(2).consumer, 1U);
  want.rank = 0;
  ASSERT_TRUE(owner.want(1, want));
  verdicts.merge(verdictsOf(owner));
  EXPECT_EQ(verdicts.at(1).consumer, 1U);
  EXPECT_EQ(verdicts.at(1).outcome, ParcelOutcome::kFailed);
  EXPECT_EQ(owner.groups() + owner.takers(), 0U) << "all ranks know";
}

TEST(ParcelStates, ARankBeyondTheOpenFetchesOfItsPeerEndsItsGroup) {
  ParcelOwner owner;
  WantMessage want{.number = 0, .name = "never"};
  while (want.number < ParcelOwner::kMaxTakers) {
    ++want.number;
    ASSERT_TRUE(owner.want(2, want));
  }
  ASSERT_TRUE(owner.want(1, {.number = 1, .name = "a", .group = "g", .size = 2, .rank = 0}));
  EXPECT_TRUE(verdictsOf(owner).empty());
  want = {.number = want.number + 1, .name = "a", .group = "g", .size = 2, .rank = 1};
  ASSERT_TRUE(owner.want(2, want));
  const auto verdicts = verdictsOf(owner);
  ASSERT_EQ(verdicts.size(), 2U);
  for (const auto& [session, end] : verdicts) {
    ASSERT_TRUE(end.why) << session;
    EXPECT_EQ(end.why->code, Code::kExhausted) << session;
  }
}

TEST(ParcelStates, AnOwnerThatSaysWholeBeforeAllIsReadIsNotBelieved) {
  ParcelTaker taker({.number = 1, .name = "a", .version = 1, .group = "g", .size = 2});
  taker.offered({.number = 1, .version = 1, .parts = {{0, 0}, {0, 1}}});
  taker.heardVerdict({.outcome = ParcelOutcome::kWhole, .version = 1, .ranks = {0, 1}});
  ASSERT_TRUE(taker.end());
  EXPECT_EQ(taker.end()->outcome, ParcelOutcome::kFailed);
  EXPECT_EQ(taker.end()->why->code, Code::kProtocol);
}

TEST(ParcelStates, ALostRankIsNotAmongThoseThatHaveAll) {
  ParcelOwner owner;
  const auto id = owner.publish({.name = "a", .version = 1, .parts = {{0, 0}}});
  ASSERT_TRUE(id && owner.ready(*id, {0, 0}));
  WantMessage want{.number = 1, .name = "a", .group = "g", .size = 2, .at_least = 1};
  ASSERT_TRUE(owner.want(1, want));
  want.rank = 1;
  ASSERT_TRUE(owner.want(2, want));
  owner.sessionOver(2, kGone);
  ASSERT_TRUE(owner.report(1, {.number = 1}));
  const auto verdicts = verdictsOf(owner);
  EXPECT_EQ(verdicts.at(1).outcome, ParcelOutcome::kWhole);
  EXPECT_EQ(verdicts.at(1).ranks, std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace viaduct::agent
