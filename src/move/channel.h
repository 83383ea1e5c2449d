// One rail's connection to one session of a peer, through all of its lives: the jobs that go
// through it, and how its rail makes progress with it. A socket of the tcp backend is one, and so
// is an endpoint of a fabric library. Threads: under the agent's lock.
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

// Whom a channel tells.
class ChannelHost {
 public:
  virtual void opened(Channel& channel) = 0;      // it is up; perhaps in its rail's poll()
  virtual void broke(Channel& channel) = 0;       // its rail has found it broken
  virtual void activate(Channel& channel) = 0;    // it wants progress()
  virtual void deactivate(Channel& channel) = 0;  // it does not any more

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
  // Why it is broken or closed; no operation: it never was.
  const Error& why() const { return why_; }
  void setWhy(Error why) { why_ = std::move(why); }

  // Jobs. add() also posts what there is room for.
  virtual void add(Job& job) = 0;
  // No more of it is posted; it fails with `why` once what is under way has ended.
  virtual void stop(Job& job, Error why) = 0;

  // From the link. Closes this end: on return nothing touches memory here for it.
  virtual void close() = 0;
  // The other end is closed as well: what was under way can be posted again...
  virtual void settle() = 0;
  // ...but not here: it fails, and another rail carries it.
  virtual void giveBack(const Error& why) = 0;
  virtual void forgetJobs() = 0;  // they are their table's alone

  // From the rail.
  virtual void progress(Clock::time_point now, Clock::time_point until) = 0;
  // When nothing has happened for a while. True: it sleeps until the poller calls. False: not yet,
  // or it dozes: it makes progress along with its rail, but the rail need not be polled for it.
  virtual bool sleep(Clock::time_point now) = 0;
  virtual void awake() = 0;
  bool dozes() const { return dozes_; }
  bool active = false;  // in the rail's list of channels that make progress

  base::Poller::Id retry = 0;  // the link's timer for the next life
  bool is_news = false;        // that it has failed: the link tells the log

 protected:
  // From within progress(): its rail tells the link.
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
