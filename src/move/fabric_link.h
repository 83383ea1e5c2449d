// The connection to one session of one peer: its channels, and the two ends' agreement on when each
// is closed and opened again. Threads: under the agent's lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/backend.h"
#include "move/channel.h"

namespace viaduct::move {

class FabricBackend;
class FabricRail;

class FabricLink final : public core::Link, public ChannelHost, public PosterHost {
 public:
  FabricLink(FabricBackend& backend, core::LinkSeed seed, core::LinkHost& host);
  ~FabricLink() override;
  FabricLink(const FabricLink&) = delete;
  FabricLink& operator=(const FabricLink&) = delete;
  static FabricLink& of(Channel& channel) { return static_cast<FabricLink&>(channel.host()); }

  core::LinkState state() const override { return state_; }
  void receive(std::span<const std::byte> message, std::vector<base::Fd> fds) override;
  void addPin(const core::RemotePin& pin) override;
  void dropPin(std::uint32_t slot) override;
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override;
  bool servedBy(const core::Rail& rail) const override;
  void close(core::Completions& out) override;

  // From the rails.
  Channel* channelFor(std::size_t rail);  // none: the link is over, or this rail of it is out
  bool ready() const { return state_.phase == core::LinkState::Phase::kReady; }
  Error whyNot(std::size_t rail) const;
  void broke(Channel& channel);
  // A pin of ours goes: when the peer has its key, nothing that it has sent may land any more.
  void withdraw(std::uint32_t slot);
  void fence(Channel& channel);

  // ChannelHost, PosterHost
  void opened(Channel& channel) override;
  void tell(const FabricMessage& message) override { send(message); }
  void activate(Channel& channel) override;
  void deactivate(Channel& channel) override;
  void askForKey(std::uint32_t slot) override;

 private:
  // A channel and what the link knows of it, whatever life it is in.
  struct ChannelEntry {
    std::unique_ptr<Channel> channel;
    Error why = {};        // it is down
    int strikes = 0;       // how often it has broken, lately
    bool decided = false;  // it has been up, or has failed to open
    bool fenced = false;   // closed on purpose
    bool at_rest = false;  // closed at both ends
    std::optional<Clock::time_point> up_since = {};
    base::Poller::Id retry = 0;
  };

  void handle(const OpenChannel& open);
  void handle(const ShutChannel& shut);
  void handle(const KeyRequest& ask);
  void handle(const KeyAnswer& key);
  void handle(const PingChannel& ping);
  void handle(const PollingNotice& polling);
  void openChannel(ChannelEntry& entry);
  Status answer(ChannelEntry& entry, const OpenChannel& open);
  void shut(ChannelEntry& entry, ShutChannel::Reason reason, const Error& why);
  void bothShut(ChannelEntry& entry);
  void strike(ChannelEntry& entry, const Error& why);
  void wakeJobs();
  void decide();
  void fail(Error why);
  void over();
  bool anyUp() const;
  bool anyUpOf(std::size_t rail) const;
  Error whyDown(const ChannelEntry& entry) const;
  Error linkError(Code code, std::string detail) const;
  ChannelEntry* entryOf(std::uint32_t channel, std::uint32_t life);
  void send(const FabricMessage& message);

  FabricBackend& backend_;
  const core::LinkSeed seed_;
  core::LinkHost& host_;
  core::LinkState state_;
  Error why_;  // it is not ready
  std::string transport_;
  PeerPins remote_;
  std::vector<ChannelEntry> entries_;
  std::unordered_set<std::uint32_t> granted_;  // slots of ours that the peer has keys of
  bool over_here_ = false, over_there_ = false;
  base::Poller::Id deciding_ = 0;
  std::size_t next_channel_ = 0;
};

}  // namespace viaduct::move
