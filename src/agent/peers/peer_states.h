// The states of a peer, as tables. Four state machines run side by side. Users see the first, as
// PeerState. docs/tour.md. Threads: plain values.
#pragma once

#include <viaduct/peer.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/transitions.h"

namespace viaduct::agent {

using base::anyOf, base::Transition;

// The peer and its session.
struct PeerPhase {
  static constexpr std::string_view kName = "the phase of a peer";
  enum State : std::uint8_t {
    kUnmet,       // no session yet
    kAdmitted,    // a connection from the peer is accepted; the peer has to be told
    kAnnouncing,  // the peer announces its pins
    kOpening,     // backends open their links
    kReady,
    kDraining,  // as kReady, but one end is about to leave: nothing new begins
    kLost,
    kGone,
  };
  enum Event : std::uint8_t { kAdmit, kBegin, kSynced, kOpened, kDrain, kUndrain, kLose, kPart };

  static constexpr auto kSteps = std::to_array<Transition<State, Event>>({
      {anyOf(kUnmet, kLost, kGone), kAdmit, kAdmitted, "the peer dialed"},
      {anyOf(kUnmet, kLost, kGone), kBegin, kAnnouncing, "this agent dialed"},
      {anyOf(kAdmitted), kBegin, kAnnouncing, "the acceptance is sent"},
      {anyOf(kAnnouncing), kSynced, kOpening, "the last pin has been announced"},
      {anyOf(kOpening), kSynced, kOpening, "said again, which changes nothing"},
      {anyOf(kReady), kSynced, kReady, "said again, which changes nothing"},
      {anyOf(kOpening), kOpened, kReady, "every link is ready or known unusable"},
      {anyOf(kDraining), kSynced, kDraining, "said again, which changes nothing"},
      {anyOf(kReady), kDrain, kDraining, "this agent or the peer has begun to drain"},
      {anyOf(kDraining), kUndrain, kReady, "neither of them drains any more"},
      {anyOf(kAdmitted, kAnnouncing, kOpening, kReady, kDraining), kLose, kLost,
       "the connection closed, or the peer is silent or broke a rule"},
      {anyOf(kUnmet, kAdmitted, kAnnouncing, kOpening, kReady, kDraining, kLost, kGone), kPart,
       kGone, "either end said goodbye, or the card was never right"},
  });
  // The public state for each State.
  static constexpr std::array kPublic{PeerState::kConnecting, PeerState::kConnecting,
                                      PeerState::kConnecting, PeerState::kConnecting,
                                      PeerState::kReady,      PeerState::kDraining,
                                      PeerState::kLost,       PeerState::kGone};
};

// The reason why a running session will end.
struct Ending {
  static constexpr std::string_view kName = "the end of a session";
  enum State : std::uint8_t {
    kNone,     // no end is in sight
    kGoodbye,  // a goodbye was sent or received; the connection closes next
    kCut,      // the connection has closed; the session ends unless another can be made
    kBroken,   // to be ended in the agent's next round of progress
  };
  enum Event : std::uint8_t { kBye, kClose, kBreak, kMove, kOver };

  static constexpr auto kSteps = std::to_array<Transition<State, Event>>({
      {anyOf(kNone, kGoodbye, kCut, kBroken), kBye, kGoodbye, "after a goodbye no reason matters"},
      {anyOf(kNone), kClose, kCut, "another connection is being tried"},
      {anyOf(kBroken), kClose, kBroken, "another connection mends no broken rule"},
      {anyOf(kNone, kCut, kBroken), kBreak, kBroken, "only a new session brings both ends in step"},
      {anyOf(kGoodbye), kBreak, kGoodbye, "the connection closes next anyway"},
      {anyOf(kNone, kCut), kMove, kNone, "the session continues over another connection"},
      {anyOf(kBroken), kMove, kBroken, "another connection mends no broken rule"},
      {anyOf(kGoodbye), kMove, kGoodbye, "the connection closes next anyway"},
      {anyOf(kNone, kGoodbye, kCut, kBroken), kOver, kNone, "the session has ended"},
  });
};

// The trust in the address that a card or the user gave.
struct Target {
  static constexpr std::string_view kName = "the address of a peer";
  enum State : std::uint8_t {
    kNone,     // no address to dial
    kUntried,  // no session has begun since the address was given
    kProven,   // it led to the peer
    kUsurped,  // it led to the peer; now another program answers there
    kWrong,    // it never led to the peer, or its card is void
  };
  enum Event : std::uint8_t { kAim, kMeet, kDeny, kForget, kVoid };

  static constexpr auto kSteps = std::to_array<Transition<State, Event>>({
      {anyOf(kNone, kUntried, kProven, kUsurped, kWrong), kAim, kUntried,
       "a card or an address was given"},
      {anyOf(kUntried, kProven, kUsurped), kMeet, kProven, "a session has begun"},
      {anyOf(kNone, kWrong), kMeet, kNone, "the peer dialed by itself"},
      {anyOf(kUntried), kDeny, kWrong, "a card that was never right does not become right"},
      {anyOf(kProven, kUsurped), kDeny, kUsurped,
       "the other program may leave the address, and the peer may dial by itself"},
      {anyOf(kNone, kUntried, kProven, kUsurped), kForget, kNone,
       "forgotten, or known by another address"},
      {anyOf(kWrong), kForget, kWrong, "waiting callers still learn the reason"},
      {anyOf(kUntried, kProven, kUsurped, kWrong), kVoid, kWrong,
       "the peer itself has refused the card"},
      {anyOf(kNone), kVoid, kNone, "the peer dialed by itself"},
  });
};

// The attempt to reach the peer, for a new session or to move a session to another connection.
struct Reach {
  static constexpr std::string_view kName = "the attempt to reach a peer";
  enum State : std::uint8_t { kIdle, kDialing, kHandshake, kBackOff };
  enum Event : std::uint8_t { kDial, kConnected, kStop, kWait };

  static constexpr auto kSteps = std::to_array<Transition<State, Event>>({
      {anyOf(kIdle, kBackOff), kDial, kDialing,
       "a new target, the end of the back-off, or a silent connection"},
      {anyOf(kDialing), kConnected, kHandshake, "a socket is connected"},
      {anyOf(kIdle, kDialing, kHandshake, kBackOff), kStop, kIdle,
       "it succeeded, failed, or is not needed any more"},
      {anyOf(kIdle), kWait, kBackOff, "it failed, and the target may become right"},
  });
};

}  // namespace viaduct::agent
