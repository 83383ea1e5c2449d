// One rail's connection to one session of one peer: its endpoint, which may be closed and opened
// again, and the jobs that go through it. Threads: under the agent's lock.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/poller.h"
#include "move/endpoint.h"
#include "move/poster.h"

namespace viaduct::move {

class Channel;

// Whom a channel tells.
class ChannelHost {
 public:
  virtual void opened(Channel& channel) = 0;            // in the rail's poll()
  virtual void tell(const FabricMessage& message) = 0;  // the peer's end
  virtual void activate(Channel& channel) = 0;          // it wants progress()
  virtual void deactivate(Channel& channel) = 0;        // it does not any more
 protected:
  ~ChannelHost() = default;
};

// What a rail's peers write first, and what it writes to them.
struct ProbeWord {
  using Words = std::array<std::uint64_t, 2>;  // theirs, ours
  std::unique_ptr<Words> words;
  std::unique_ptr<Registration> registered;

  std::byte* out() const { return reinterpret_cast<std::byte*>(&(*words)[1]); }
  ProbeTarget probe() const {
    return {.address = reinterpret_cast<std::uintptr_t>(words->data()), .key = registered->key()};
  }
};

struct ChannelSeed {
  const Domain& domain;
  base::Poller& poller;
  const ProbeWord& word;
  Duration opening;  // may take this long
  Duration spin;     // before it sleeps
  std::uint32_t index = 0;
  Poster::Seed poster;
};

class Channel {
 public:
  Channel(const ChannelSeed& seed, ChannelHost& host, PosterHost& poster_host);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  ChannelHost& host() { return host_; }
  std::uint32_t index() const { return seed_.index; }
  std::uint32_t life() const { return life_; }
  bool up() const { return phase_ == Phase::kUp; }
  bool down() const { return phase_ == Phase::kDown; }
  bool waiting() const { return phase_ == Phase::kWaiting; }
  std::size_t rail() const { return seed_.poster.rail; }  // that makes its progress
  // The endpoint's, also after it is gone.
  const std::string& transport() const { return transport_; }

  // An endpoint of our own; what the peer has to know of it.
  Result<OpenChannel> begin(std::uint32_t life, bool answer);
  // Connects the endpoint to the peer's, and probes the path by a first write.
  Status join(const OpenChannel& theirs);
  // Closes our end. On return nothing touches memory here for it; what was under way is unsettled
  // until Poster::settle().
  void end();
  // The library, or silence, has ended it: seen by the rail's poll().
  const std::optional<Error>& broke() const { return broke_; }

  Poster& poster() { return poster_; }
  void push();
  void retireKey(std::uint32_t generation);
  void answered(const PingChannel& pong);
  void peerPolling(const PollingNotice& theirs);

  // From the rail.
  void progress(Clock::time_point now, Clock::time_point until);
  // When nothing has happened for a while. True: it sleeps until the poller calls. False: not yet,
  // or it dozes: it makes progress along with its rail, but the rail need not be polled for it.
  bool sleep(Clock::time_point now);
  void awake();
  bool dozes() const { return doze_ != 0; }
  bool active = false;  // in the rail's list of channels that make progress

 private:
  enum class Phase : std::uint8_t { kDown, kWaiting, kProbing, kUp };
  void lookLater();
  void look();
  void judgeSilence(Clock::time_point now);
  bool probed();
  void tellPolling(bool awake);
  void told();
  bool sleepUntilTold(Clock::time_point now, Duration quiet);
  bool armedAWhile(Clock::time_point now, Duration quiet);
  void doze(Clock::time_point now, Duration quiet, bool rests);
  Error linkError(Error why) const;
  void breakWith(Error why);

  const ChannelSeed seed_;
  ChannelHost& host_;
  Poster poster_;
  Phase phase_ = Phase::kDown;
  std::uint32_t life_ = 0;
  std::unique_ptr<Endpoint> endpoint_;
  std::string transport_, transport_devices_;
  std::optional<Error> broke_;
  ProbeTarget there_;  // the peer's word
  bool probe_sent_ = false;
  Flush probe_;
  base::Poller::Id watch_ = 0, timer_ = 0, doze_ = 0;
  Clock::time_point opening_until_{}, last_busy_{};
  // Where the endpoint tells only while it is armed: since when it is, and how long it is not when
  // something has come in, in times of the spin.
  std::optional<Clock::time_point> armed_since_;
  int unarmed_for_ = 1;
  // Where the endpoint has no descriptor: what the two ends have told each other.
  bool told_polling_ = false, peer_polls_ = false;
  // While nothing comes back: questions to the peer and its answers.
  bool asked_ = false;
  int answers_ = 0;
};

}  // namespace viaduct::move
