// The life of a channel as a table of transitions. Both ends of a channel follow the same table,
// and tell each other when they close. Threads: a value.
#pragma once

#include <viaduct/deadline.h>

#include <array>
#include <cstdint>
#include <optional>

#include "base/transitions.h"

namespace viaduct::move {

using base::anyOf;

// How an end closes a channel, as its peer hears it.
enum class ShutReason : std::uint8_t {
  kBroken,  // or in answer to the other end's
  kFence,   // on purpose: memory was withdrawn
  kOver,    // all channels of the link are closed, and no more come
};

struct ChannelSteps {
  enum State : std::uint8_t {
    kResting,  // closed at both ends: nothing lands any more. The dialer waits before the next life
    kRenewing,  // closed at both ends on purpose: the dialer opens the next life at once
    kWaiting,   // open at this end; the other end has not answered
    kProbing,   // connected; no byte has arrived over it
    kUp,        // carries ops
    kBroken,    // no longer works; the next poll() closes this end
    kClosing,   // closed at this end; the peer may still read and write
    kFencing,   // the same, on purpose
    kOver,      // the link is over
  };
  enum Event : std::uint8_t {
    kOpen,        // the next life begins
    kOpenFailed,  // at the dialer, before the peer has heard of that life
    kJoin,        // the other end has answered
    kProve,       // bytes have gone there and come back
    kBreak,       // the library, the kernel or a long silence says so
    kClose,       // this end closes, and tells the peer
    kFence,       // the same, because memory was withdrawn
    kPeerClosed,  // the peer has closed its end
    kPeerFenced,  // the same, because memory was withdrawn
    kEnd,         // of the link
  };

  static constexpr auto kSteps = std::to_array<base::Transition<State, Event>>({
      {anyOf(kResting), kOpen, kWaiting, "the dialer's wait is over, or the peer has dialed"},
      {anyOf(kRenewing), kOpen, kWaiting, "a fence is no fault of the path"},
      {anyOf(kWaiting), kOpenFailed, kResting, "a device that does not open may come back"},
      {anyOf(kWaiting), kJoin, kProbing, "no library reports a path that does not work"},
      {anyOf(kWaiting), kProve, kUp, "the greeting of a socket proves its path"},
      {anyOf(kProbing), kProve, kUp, "a first write has come back"},
      {anyOf(kWaiting, kProbing, kUp), kBreak, kBroken,
       "found in the midst of a poll, which then tells the link"},
      {anyOf(kWaiting, kProbing, kUp, kBroken), kClose, kClosing,
       "the peer is told, and closes its end"},
      {anyOf(kResting, kRenewing), kClose, kClosing,
       "the peer has ended a life that did not begin here"},
      {anyOf(kWaiting, kProbing, kUp, kBroken), kFence, kFencing,
       "only a closed end keeps a peer from withdrawn memory"},
      {anyOf(kClosing), kPeerClosed, kResting, "neither end touches memory for this life"},
      {anyOf(kClosing), kPeerFenced, kRenewing, "the peer's fence was seen here as a break"},
      {anyOf(kFencing), kPeerClosed, kRenewing, "the peer has followed the fence"},
      {anyOf(kFencing), kPeerFenced, kRenewing, "both ends have withdrawn memory"},
      {anyOf(kResting, kRenewing, kWaiting, kProbing, kUp, kBroken, kClosing, kFencing), kEnd,
       kOver, "no channel outlives its link"},
  });
};
using ChannelState = ChannelSteps::State;
using ChannelEvent = ChannelSteps::Event;

// How long a channel rests before its next life: twice as long with each break in a row.
struct RetryRule {
  Duration first = {}, last = {};
  Duration worked = {};  // a channel that was up for so long is counted anew
};

class ChannelLife {
 public:
  ChannelLife(std::uint32_t first, const RetryRule& rule)
      : rule_(rule), first_(first), number_(first) {}

  ChannelState state() const { return state_; }
  // Which of the channel's lives. A life ends, at both ends, when both are closed.
  std::uint32_t number() const { return number_; }
  bool isFirst() const { return number_ == first_; }
  void skipTo(std::uint32_t number) { number_ = number; }  // the peer has begun that one

  // False: the table has no such step, and nothing has changed.
  bool on(ChannelEvent event);

  bool up() const { return state_ == ChannelState::kUp; }
  bool broken() const { return state_ == ChannelState::kBroken; }
  bool atRest() const {
    return state_ == ChannelState::kResting || state_ == ChannelState::kRenewing;
  }
  // This end is closed, and the peer has been told; it has not said that its end is.
  bool closing() const {
    return state_ == ChannelState::kClosing || state_ == ChannelState::kFencing;
  }
  bool down() const { return atRest() || closing() || state_ == ChannelState::kOver; }
  bool fenced() const {
    return state_ == ChannelState::kRenewing || state_ == ChannelState::kFencing;
  }

  // It has been up, or has failed: its link need not wait for it to become ready.
  bool decided() const { return decided_; }
  void decide() { decided_ = true; }
  bool hasBeenUp() const { return up_since_.has_value(); }  // since it last rested
  bool wasRenewed() const { return was_renewed_; }          // this life follows one that was fenced
  int breaks() const { return breaks_; }                    // in a row
  Duration wait() const;                                    // before the next life

 private:
  RetryRule rule_;
  std::uint32_t first_, number_;
  ChannelState state_ = ChannelState::kResting;
  bool decided_ = false, was_renewed_ = false;
  int breaks_ = 0;
  std::optional<Clock::time_point> up_since_;
};

}  // namespace viaduct::move
