// The states of a channel as a table of transitions. Both ends of a channel follow the same table,
// and tell each other when they close. Threads: a value.
#pragma once

#include <viaduct/deadline.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/transitions.h"

namespace viaduct::move {

using base::anyOf;

// The reason that an end gives the peer when it closes a channel.
enum class ShutReason : std::uint8_t {
  kBroken,  // the channel failed, or the peer's end has closed
  kFence,   // memory was withdrawn, and only a closed channel keeps the peer from it
  kOver,    // all channels of the link are closed for good
};

struct ChannelSteps {
  enum State : std::uint8_t {
    kResting,   // closed at both ends, at first or after a break; the dialer waits
    kRenewing,  // closed at both ends after a fence; the dialer opens the next life at once
    kWaiting,   // open at this end; the other end has not answered
    kProbing,   // connected, but the first write has not come back yet
    kUp,        // carries ops
    kBroken,    // no longer works; the rail's poll() closes this end
    kClosing,   // closed at this end; the peer may still read and write
    kFencing,   // as kClosing, but closed on purpose by a fence
    kOver,      // the link is over; no further life
  };
  enum Event : std::uint8_t {
    kOpen,        // the next life begins
    kOpenFailed,  // the dialer could not open; the peer has not heard of this life
    kJoin,        // the other end has answered
    kProve,       // a round trip over the path has succeeded
    kBreak,       // the library, the kernel or a long silence shows that the channel failed
    kClose,       // this end closes, and tells the peer
    kFence,       // this end closes because memory was withdrawn, and tells the peer
    kPeerClosed,  // the peer has closed its end
    kPeerFenced,  // the peer has closed its end because memory was withdrawn
    kEnd,         // the link ends
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

// The pause before a channel's next life. Each further break in a row doubles it, up to `last`.
struct RetryRule {
  Duration first = {}, last = {};
  Duration worked = {};  // a channel that was up for this long starts a new count of breaks
};

class ChannelLife {
 public:
  ChannelLife(std::uint32_t first, const RetryRule& rule)
      : rule_(rule), first_(first), number_(first) {}
  ChannelLife(const ChannelLife& other)
      : rule_(other.rule_),
        first_(other.first_),
        number_(other.number_),
        state_(other.state()),
        decided_(other.decided_),
        was_renewed_(other.was_renewed_),
        breaks_(other.breaks_),
        up_since_(other.up_since_) {}
  ChannelLife& operator=(const ChannelLife&) = delete;
  ~ChannelLife() = default;

  ChannelState state() const { return state_; }
  // The number of the current life. It grows by one when a life has ended at both ends, or could
  // not open at the dialer.
  std::uint32_t number() const { return number_; }
  bool isFirst() const { return number_ == first_; }
  void skipTo(std::uint32_t number) { number_ = number; }  // the peer has begun that life

  // False: the table has no such transition, and the state stays.
  bool on(ChannelEvent event);

  bool up() const { return state_ == ChannelState::kUp; }  // threads: any
  bool broken() const { return state_ == ChannelState::kBroken; }
  bool atRest() const {
    return state_ == ChannelState::kResting || state_ == ChannelState::kRenewing;
  }
  // This end is closed and the peer has been told. The peer has not closed its end yet.
  bool closing() const {
    return state_ == ChannelState::kClosing || state_ == ChannelState::kFencing;
  }
  bool down() const { return atRest() || closing() || state_ == ChannelState::kOver; }
  bool fenced() const {
    return state_ == ChannelState::kRenewing || state_ == ChannelState::kFencing;
  }

  // True once the channel has been up or has failed, or the link's time limit has passed. The link
  // then becomes ready without waiting for it.
  bool decided() const { return decided_; }
  void decide() { decided_ = true; }
  bool hasBeenUp() const { return up_since_.has_value(); }  // since the last kResting
  bool wasRenewed() const { return was_renewed_; }          // the previous life ended by a fence
  int breaks() const { return breaks_; }                    // in a row; see RetryRule::worked
  Duration wait() const;                                    // pause before the next life

 private:
  RetryRule rule_;
  std::uint32_t first_, number_;
  std::atomic<ChannelState> state_{ChannelState::kResting};
  bool decided_ = false, was_renewed_ = false;
  int breaks_ = 0;
  std::optional<Clock::time_point> up_since_;
};

}  // namespace viaduct::move
