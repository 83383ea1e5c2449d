// A channel: one rail's connection to one session of a peer, through all of its lives. Over tcp it
// is a socket, over a fabric library an endpoint. Threads: under the agent's lock.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/poller.h"
#include "move/channel_life.h"
#include "move/job.h"

namespace viaduct::move {

class Channel;

// The link of a channel, as the channel sees it.
class ChannelHost {
 public:
  virtual void opened(Channel& channel) = 0;      // the channel is up; maybe within poll()
  virtual void broke(Channel& channel) = 0;       // from the rail, which has found it broken
  virtual void activate(Channel& channel) = 0;    // the channel wants progress()
  virtual void deactivate(Channel& channel) = 0;  // it needs no progress() now

 protected:
  ~ChannelHost() = default;
};

class Channel {
 public:
  struct Place {
    std::uint32_t index = 0;  // in its link
    std::size_t rail = 0;     // that makes its progress
  };
  Channel(ChannelHost& host, const Place& place, const ChannelLife& life)
      : host_(host), place_(place), life_(life) {}
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  ChannelHost& host() { return host_; }
  std::uint32_t index() const { return place_.index; }
  std::size_t rail() const { return place_.rail; }
  void moveTo(std::size_t rail) { place_.rail = rail; }
  ChannelLife& life() { return life_; }
  const ChannelLife& life() const { return life_; }
  bool up() const { return life_.up(); }
  // The reason for the last break. Without an operation: no break yet.
  const Error& why() const { return why_; }
  void setWhy(Error why) { why_ = std::move(why); }

  // Jobs. add() also posts as much as there is room for.
  virtual void add(Job& job) = 0;
  // Posts no more of the job. It fails with `why` when its posted ops have ended.
  virtual void stop(Job& job, Error why) = 0;

  // From the link. Closes this end: after the return nothing touches memory here for the channel.
  virtual void close() = 0;
  // The other end is closed as well: unfinished ops can be posted again.
  virtual void settle() = 0;
  // Fails all jobs of the channel, so that another rail carries them.
  virtual void giveBack(const Error& why) = 0;
  virtual void forgetJobs() = 0;  // from now on only their table knows them

  // From the rail.
  virtual void progress(Clock::time_point now, Clock::time_point until) = 0;
  // Called after each progress(). True: the channel sleeps until the poller calls. False: it stays
  // awake, or it dozes: then its rail need not be polled, but gives it progress when it is.
  virtual bool sleep(Clock::time_point now) = 0;
  virtual void awake() = 0;
  bool dozes() const { return dozes_; }
  bool active = false;  // in the rail's list of channels that make progress

  base::Poller::Id retry = 0;  // the link's timer for the next life
  bool is_news = false;        // the link has to log its failure

 protected:
  // Called within progress(). The rail tells the link when all of its channels had their turn.
  void breakWith(Error why) {
    if (!life_.on(ChannelEvent::kBreak)) return;
    why_ = std::move(why);
    host_.activate(*this);
  }
  bool dozes_ = false;

 private:
  ChannelHost& host_;
  Place place_;
  ChannelLife life_;
  Error why_;
};

}  // namespace viaduct::move
