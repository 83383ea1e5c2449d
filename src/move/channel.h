// A channel: one rail's connection to one session of a peer. It may close at both ends and open
// again. The time from an opening to the next close is a life. In each life the channel has one
// socket over tcp, or one endpoint over a fabric library. Threads: add(), stop(), progress(),
// sleep() and hasEvents() of a thread that runs the rail; all else while the rail is stopped.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/poller.h"
#include "move/channel_life.h"
#include "move/job.h"

namespace viaduct::move {

class Channel;

// When a channel's progress() has to return.
struct Turn {
  Clock::time_point until;
  const std::atomic<bool>& pause;
  bool isOver(Clock::time_point now) const {
    return now >= until || pause.load(std::memory_order_relaxed);
  }
};

// The link of a channel, as the channel sees it.
class ChannelHost {
 public:
  virtual void opened(Channel& channel) = 0;      // the channel is up
  virtual void broke(Channel& channel) = 0;       // called by the rail for a channel in kBroken
  virtual void activate(Channel& channel) = 0;    // the channel needs progress()
  virtual void deactivate(Channel& channel) = 0;  // the channel needs no progress() now

 protected:
  ~ChannelHost() = default;
};

class Channel : public Carrier {
 public:
  struct Position {
    std::uint32_t index = 0;  // the channel's index in its link
    std::size_t rail = 0;     // index of the rail that calls progress()
  };
  Channel(ChannelHost& host, const Position& place, const ChannelLife& life)
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
  // The reason for the last break. An empty Error::operation means that there was no break yet.
  const Error& why() const { return why_; }
  void setWhy(Error why) { why_ = std::move(why); }

  // Adds a job, and posts as much of it as takes microseconds. The rail's polls post the rest.
  virtual void add(Job& job) = 0;

  // The link calls these. close() closes this end: on return nothing touches this process's memory
  // for the channel.
  virtual void close() = 0;
  // Tells the channel that the peer's end is closed too. Unfinished ops can be posted again.
  virtual void settle() = 0;
  virtual void forgetJobs() = 0;  // drops the channel's pointers to jobs; the JobTable keeps them

  // The rail calls these.
  virtual void progress(Clock::time_point now, const Turn& turn) = 0;
  // Called after each progress() that leaves no event. True: the channel needs no progress() until
  // a poller event wakes it. False: each poll of the rail calls progress(). While dozes() is true,
  // the channel alone does not make its rail busy.
  virtual bool sleep(Clock::time_point now) = 0;
  virtual void awake() = 0;
  bool dozes() const { return dozes_; }
  // True: add(), progress() or sleep() has left work for a thread that has stopped the rail, such
  // as a message to the peer or a timer. handleEvents() does that work.
  virtual bool hasEvents() const { return false; }
  virtual void handleEvents() {}
  bool active = false;  // the channel is in its rail's list of channels that need progress()

  base::Poller::Id retry = 0;  // the link's timer for the next life
  bool is_news = false;        // the link still has to log the channel's failure

 protected:
  // Marks the channel as broken. The thread that stops the rail next tells the link, after the
  // current poll.
  void breakWith(Error why) {
    if (!life_.on(ChannelEvent::kBreak)) return;
    why_ = std::move(why);
    host_.activate(*this);
  }
  bool dozes_ = false;

 private:
  ChannelHost& host_;
  Position place_;
  ChannelLife life_;
  Error why_;
};

}  // namespace viaduct::move
