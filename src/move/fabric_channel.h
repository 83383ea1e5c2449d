// A channel over a fabric library. Each life has an endpoint, which is connected to the peer's
// endpoint and probed by a first write. Threads: as move::Channel.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/poller.h"
#include "move/channel.h"
#include "move/endpoint.h"
#include "move/poster.h"

namespace viaduct::move {

// A rail's registered memory for probes: the target of its peers' probes, and the source of its
// own.
struct ProbeWord {
  using Pair = std::array<std::uint64_t, 2>;  // target of the peers' probes, source of ours
  std::unique_ptr<Pair> words;
  std::unique_ptr<Registration> registered;

  std::byte* out() const { return reinterpret_cast<std::byte*>(&(*words)[1]); }
  ProbeTarget probe() const {
    return {.address = reinterpret_cast<std::uintptr_t>(words->data()), .key = registered->key()};
  }
};

// The link of a channel, as far as it sends the channel's messages to the peer.
class ChannelMessages {
 public:
  virtual void tell(const FabricMessage& message) = 0;
  // Requests the key of that pin of the peer, unless that was done.
  virtual void askForKey(std::uint32_t slot) = 0;

 protected:
  ~ChannelMessages() = default;
};

struct FabricChannelSeed {
  const Domain& domain;
  base::Poller& poller;
  const ProbeWord& word;
  Duration opening;  // time limit for opening
  Duration spin;     // quiet time before the channel sleeps
  Channel::Position place = {};
  Poster::Seed poster;
};

class FabricChannel final : public Channel {
 public:
  FabricChannel(const FabricChannelSeed& seed, ChannelHost& host, ChannelMessages& peer,
                const ChannelLife& life);
  FabricChannel(const FabricChannel&) = delete;
  FabricChannel& operator=(const FabricChannel&) = delete;
  ~FabricChannel() override { FabricChannel::close(); }

  // The transport of the last connected endpoint.
  const std::string& transport() const { return transport_; }

  // Opens this life's endpoint, and returns the message that describes it to the peer.
  Result<OpenChannel> begin(bool answer);
  // Connects the endpoint to the peer's, and probes the path by a first write.
  Status join(const OpenChannel& theirs);

  void keysHaveCome();
  void retireKey(std::uint32_t generation);
  void answered();
  void pinged();  // the peer waits for an answer over this channel
  void peerPolling(bool awake);

  void add(Job& job) override;
  void stop(Job& job) override { poster_.stop(job); }
  // The jobs with posted parts stay unsettled until settle().
  void close() override;
  void settle() override { poster_.settle(); }
  void forgetJobs() override { poster_.forgetJobs(); }
  void progress(Clock::time_point now, const Turn& turn) override;
  bool sleep(Clock::time_point now) override;
  void awake() override;
  bool hasEvents() const override { return events_ != Events{} || poster_.wantsKeys(); }
  void handleEvents() override;

 private:
  // Work that progress() and sleep() leave for handleEvents().
  struct Events {
    bool proved = false;         // the probe has come back
    bool begins_look = false;    // data is in flight, and no timer checks it
    bool tells_polling = false;  // the peer has to poll
    bool dozes = false;
    bool operator==(const Events&) const = default;
  };
  // The state of the conversation with the peer in one life.
  struct Talk {
    bool probe_sent = false;
    // Only for endpoints without a descriptor: the last PollingNotice in each direction.
    bool told_polling = false, peer_polls = false;
    // Pings to a silent peer since the last progress: when the unanswered one was sent, the number
    // of answers, and the longest wait for one.
    std::optional<Clock::time_point> asked;
    int answers = 0;
    Duration slowest_answer{};
  };
  bool joined() const { return life().state() == ChannelState::kProbing || up(); }
  void push();
  void pushNow();
  void afterPush();
  void lookLater();
  void look();
  void judgeSilence(Clock::time_point now);
  bool probed();
  void tellPolling(bool awake);
  void told();
  bool sleepUntilTold(Clock::time_point now, Duration quiet);
  bool armedAWhile(Clock::time_point now, Duration quiet);
  Duration quietFor(Clock::time_point now) const;
  // Whether ops, or the probe, wait to be posted.
  bool unposted() const { return poster_.starved() || (!up() && !talk_.probe_sent); }
  bool rests() const { return up() && !unposted(); }
  bool mayDoze() const { return unposted() || poster_.idle(); }
  void doze();
  bool mayTell(bool awake) const { return watch_ == 0 && talk_.told_polling != awake; }
  Error linkError(Error why) const;

  const FabricChannelSeed seed_;
  ChannelMessages& peer_;
  Poster poster_;
  std::unique_ptr<Endpoint> endpoint_;
  std::string transport_, transport_devices_;
  ProbeTarget there_;  // target of our probe, in the peer's memory
  Talk talk_;
  Events events_;
  Flush probe_;
  base::Poller::Id watch_ = 0, timer_ = 0, doze_ = 0;
  Clock::time_point opening_until_{}, last_busy_{};
  // For endpoints that report events only while armed: the time of arm(), and the pause before the
  // next arm() in multiples of the spin.
  std::optional<Clock::time_point> armed_since_;
  int unarmed_for_ = 1;
};

}  // namespace viaduct::move
