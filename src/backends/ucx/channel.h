// One rail's way to one life of one peer: its conduit, which may be closed and opened again, and
// the jobs that go through it. Threads: under the agent's lock.
#pragma once

#include <memory>
#include <optional>

#include "backends/ucx/conduit.h"
#include "backends/ucx/poster.h"
#include "base/poller.h"

namespace viaduct::ucx {

class Channel;

// Whom a channel tells.
class ChannelHost {
 public:
  virtual void opened(Channel& channel) = 0;      // in the rail's poll()
  virtual void ask(const Ping& ping) = 0;         // of the peer's end
  virtual void activate(Channel& channel) = 0;    // it wants to be turned
  virtual void deactivate(Channel& channel) = 0;  // it does not any more
 protected:
  ~ChannelHost() = default;
};

struct ChannelSeed {
  const Context& context;
  const OwnPins& own;
  RemotePins& remote;
  base::Poller& poller;
  const Probe& probe;  // our word for the peer's first write
  Duration opening;    // may take this long
  Duration spin;       // before it sleeps
  std::uint32_t index = 0;
  std::size_t rail = 0;  // that turns it
  std::size_t key = 0;   // which of a pin's keys is for its rail at the peer
};

class Channel {
 public:
  Channel(const ChannelSeed& seed, ChannelHost& host, PosterHost& poster_host);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  const ChannelSeed& seed() const { return seed_; }
  ChannelHost& host() { return host_; }
  std::uint32_t index() const { return seed_.index; }
  std::uint32_t life() const { return life_; }
  bool up() const { return phase_ == Phase::kUp; }
  bool down() const { return phase_ == Phase::kDown; }
  bool waiting() const { return phase_ == Phase::kWaiting; }
  const std::vector<Transport>& lanes() const { return lanes_; }

  // A worker of our own; what the peer has to know of it.
  Result<Open> begin(std::uint32_t life, bool answer);
  // The endpoint to the peer's, and a first write that shows that the way leads there.
  Status join(const Open& theirs);
  // Closes our end. On return nothing touches memory here for it; what was under way is unsettled
  // until Poster::settle().
  void end();
  // UCX, or silence, has ended it: seen by the rail's poll().
  const std::optional<Error>& broke() const { return broke_; }

  Poster& poster() { return poster_; }
  void push();
  void retireKey(std::uint32_t generation);
  void answered(const Ping& pong);

  // From the rail.
  void turn(Clock::time_point now, Clock::time_point until);
  // Until the poller calls, when nothing has happened for a while; false: not yet.
  bool sleep(Clock::time_point now);
  void awake();
  bool active = false;  // in the rail's list of those to turn

 private:
  enum class Phase : std::uint8_t { kDown, kWaiting, kProbing, kUp };
  Status startProbe(const Probe& there);
  void lookLater();
  void look();
  void judgeSilence(Clock::time_point now);
  void breakWith(Error why);

  const ChannelSeed seed_;
  ChannelHost& host_;
  Poster poster_;
  Phase phase_ = Phase::kDown;
  std::uint32_t life_ = 0;
  std::unique_ptr<Conduit> conduit_;
  std::vector<Transport> lanes_;
  std::optional<Error> broke_;
  Conduit::Flush probe_;
  base::Poller::Id watch_ = 0, timer_ = 0;
  Clock::time_point opening_until_{}, last_busy_{};
  // While nothing comes back: questions to the peer and its answers.
  bool asked_ = false;
  int answers_ = 0;
  bool awake_ = false;
};

}  // namespace viaduct::ucx
