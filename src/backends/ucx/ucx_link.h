// The way to one life of one peer: its channels, and the two ends' agreement on when each is closed
// and opened again. Threads: under the agent's lock.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "backends/ucx/channel.h"
#include "core/backend.h"

namespace viaduct::ucx {

class UcxBackend;
class UcxRail;

class UcxLink final : public core::Link, public ChannelHost, public PosterHost {
 public:
  UcxLink(UcxBackend& backend, core::LinkSeed seed, core::LinkHost& host);
  ~UcxLink() override;
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;
  static UcxLink& of(Channel& channel) { return static_cast<UcxLink&>(channel.host()); }

  core::LinkState state() const override { return state_; }
  void receive(std::span<const std::byte> message, std::vector<core::Fd> fds) override;
  void addPin(const core::RemotePin& pin) override;
  void dropPin(std::uint32_t slot) override;
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override;
  bool servedBy(const core::Rail& rail) const override;
  void close(core::Completions& out) override;

  // From the rails.
  Channel* channelFor(std::size_t rail);  // none: the link is over, or this rail of it is out
  bool ready() const { return state_.phase == core::LinkState::Phase::kReady; }
  Error whyNot() const;
  void broke(Channel& channel);
  // A pin of ours goes: when the peer has its key, nothing that it has sent may land any more.
  void withdraw(std::uint32_t slot);
  void fence(Channel& channel);

  // ChannelHost, PosterHost
  void opened(Channel& channel) override;
  void ask(const Ping& ping) override;
  void activate(Channel& channel) override;
  void deactivate(Channel& channel) override;
  void askForKey(std::uint32_t slot) override;

 private:
  // A channel's place, whatever life it is in.
  struct Seat {
    std::unique_ptr<Channel> channel;
    Error why = {};        // it is down
    int strikes = 0;       // how often it has broken, lately
    bool decided = false;  // it has been up, or has failed to open
    bool fenced = false;   // closed on purpose
    bool at_rest = false;  // closed at both ends
    Clock::time_point up_since{};
    base::Poller::Id retry = 0;
  };

  void handle(const Open& open);
  void handle(const Shut& shut);
  void handle(const Ask& ask);
  void handle(const Key& key);
  void handle(const Ping& ping);
  void openSeat(Seat& seat);
  Status answer(Seat& seat, const Open& open);
  Status join(Seat& seat, const Open& open);
  void shut(Seat& seat, Shut::Reason reason, const Error& why);
  void bothShut(Seat& seat);
  void strike(Seat& seat, const Error& why);
  void wakeJobs();
  void decide();
  void fail(Error why);
  void over();
  bool anyUp() const;
  Seat* seatOf(std::uint32_t channel, std::uint32_t life);
  void send(const Message& message);

  UcxBackend& backend_;
  const core::LinkSeed seed_;
  core::LinkHost& host_;
  core::LinkState state_;
  Error why_;  // it is not ready
  std::string way_;
  RemotePins remote_;
  std::vector<Seat> seats_;
  std::unordered_set<std::uint32_t> granted_;  // slots of ours that the peer has keys of
  bool over_here_ = false, over_there_ = false;
  base::Poller::Id deciding_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace viaduct::ucx
