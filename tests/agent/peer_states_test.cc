// Tests the tables of a peer's states: each event in each state leads to the expected state, and
// all other steps are refused.
#include "agent/peers/peer_states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace viaduct::agent {
namespace {

// Brings a machine into that state by steps of its table. Each state is reachable from the first
// one.
template <class Table>
base::Machine<Table> in(typename Table::State wanted) {
  std::vector<base::Machine<Table>> known(1);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i].is(wanted)) return known[i];
    for (const auto& row : Table::kSteps) {
      base::Machine<Table> next = known[i];
      if ((row.from & base::anyOf(next.now())) == 0) continue;
      next.step(row.event);
      if (std::ranges::none_of(known, [&](const auto& one) { return one.is(next.now()); }))
        known.push_back(next);
    }
  }
  ADD_FAILURE() << "state " << static_cast<int>(wanted) << " is never reached";
  return {};
}

// Expects a row for each state and a column for each event. A letter is the next state, by its
// position in `letters`; a dash means that no step is allowed.
template <class Table>
void expectSteps(const std::string& letters, const std::vector<std::string>& expected) {
  using Machine = base::Machine<Table>;
  ASSERT_EQ(letters.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::string found;
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      const auto state = static_cast<typename Machine::State>(i);
      const auto event = static_cast<typename Machine::Event>(j);
      const auto next = Machine::after(state, event);
      found += next ? letters[static_cast<std::size_t>(*next)] : '-';
      Machine machine = in<Table>(state);
      if (next) {
        machine.step(event);
        EXPECT_EQ(machine.now(), *next);
      } else {
#ifdef NDEBUG
        ::testing::internal::CaptureStderr();
        machine.step(event);
        EXPECT_NE(::testing::internal::GetCapturedStderr().find("has no step for event"),
                  std::string::npos);
        EXPECT_EQ(machine.now(), state) << "a step that is not allowed changes nothing";
#else
        EXPECT_DEATH(machine.step(event), "has no step for event");
#endif
      }
    }
    EXPECT_EQ(found, expected[i]) << "from " << letters[i];
  }
  // Each pair of state and event has at most one row, so the order of rows does not matter.
  std::set<std::pair<int, int>> seen;
  for (const auto& row : Table::kSteps) {
    EXPECT_FALSE(row.reason.empty());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if ((row.from >> i & 1U) == 0) continue;
      EXPECT_TRUE(seen.emplace(static_cast<int>(i), static_cast<int>(row.event)).second)
          << row.reason;
    }
  }
}

TEST(PeerStates, APeersSessionBeginsOpensAndEnds) {
  // Columns: the events admit, begin, synced, opened, drain, undrain, lose, part.
  expectSteps<PeerPhase>("UANORDLG", {"AN-----G",    // unmet
                                      "-N----LG",    // admitted
                                      "--O---LG",    // announcing
                                      "--OR--LG",    // opening
                                      "--R-D-LG",    // ready
                                      "--D--RLG",    // draining
                                      "AN-----G",    // lost
                                      "AN-----G"});  // gone
}

TEST(PeerStates, TheFirstReasonForTheEndOfASessionDecidesUnlessGoodbyeIsSaid) {
  // Columns: the events goodbye, close, break, move, over.
  expectSteps<Ending>("NGCB", {"GCBNN",    // none
                               "G-GGN",    // goodbye
                               "G-BNN",    // cut
                               "GBBBN"});  // broken
}

TEST(PeerStates, OnlyAnAddressThatNeverLedToThePeerIsGivenUp) {
  // Columns: the events aim, meet, deny, forget.
  expectSteps<Target>("NTPUW", {"TN-NN",    // none
                                "TPWNW",    // untried
                                "TPUNW",    // proven
                                "TPUNW",    // usurped
                                "TN-WW"});  // wrong
}

TEST(PeerStates, OneAttemptRunsAtATime) {
  // Columns: the events dial, connected, stop, wait.
  expectSteps<Reach>("IDHB", {"D-IB",    // idle
                              "-HI-",    // dialing
                              "--I-",    // handshake
                              "D-I-"});  // back-off
}

TEST(PeerStates, UsersSeeAPeerAsReadyOnlyWhileItIs) {
  for (const auto phase :
       {PeerPhase::kUnmet, PeerPhase::kAdmitted, PeerPhase::kAnnouncing, PeerPhase::kOpening})
    EXPECT_EQ(PeerPhase::kPublic[phase], PeerState::kConnecting);
  EXPECT_EQ(PeerPhase::kPublic[PeerPhase::kReady], PeerState::kReady);
  EXPECT_EQ(PeerPhase::kPublic[PeerPhase::kDraining], PeerState::kDraining);
  EXPECT_EQ(PeerPhase::kPublic[PeerPhase::kLost], PeerState::kLost);
  EXPECT_EQ(PeerPhase::kPublic[PeerPhase::kGone], PeerState::kGone);
}

}  // namespace
}  // namespace viaduct::agent
