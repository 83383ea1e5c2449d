// The connection to one session of one peer, made of channels. The link opens its channels, closes
// them at both ends, and opens them again. Threads: under the agent's lock.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "move/channel.h"
#include "move/channel_rail.h"

namespace viaduct::move {

// A backend's facts for all of its links.
struct LinkContext {
  std::string_view backend;  // the backend's name
  std::span<ChannelRail* const> rails;
  base::Poller& poller;
  RetryRule retry;
  int most_breaks = 0;  // a channel with more breaks in a row ends the link if no other is up
  bool ends_with_last = false;  // the link ends when its last channel breaks
};

class ChannelLink : public core::Link, public ChannelHost {
 public:
  ~ChannelLink() override = default;  // a derived class calls end() first
  ChannelLink(const ChannelLink&) = delete;
  ChannelLink& operator=(const ChannelLink&) = delete;

  core::LinkState state() const final { return state_; }
  bool servedBy(const core::Rail& rail) const final;
  void close(core::Completions& out) final;

  // The rails call these. Null: the link is not ready, or the rail has no usable channel.
  Channel* channelFor(std::size_t rail);
  bool ready() const { return state_.phase == core::LinkState::Phase::kReady; }
  Error whyNot(std::size_t rail) const;

  // ChannelHost
  void opened(Channel& channel) override;
  void activate(Channel& channel) final { context_.rails[channel.rail()]->activate(channel); }
  void deactivate(Channel& channel) final { context_.rails[channel.rail()]->deactivate(channel); }

 protected:
  ChannelLink(const LinkContext& context, core::LinkSeed seed, core::LinkHost& host);

  // A backend overrides these. open() begins the life of a channel in the state kWaiting.
  virtual Status open(Channel& channel) = 0;
  virtual std::string readyText() = 0;
  // Tells the peer that this end has closed the channel, or with null the whole link.
  virtual void tellShut(const Channel* channel, ShutReason reason, const Error& why) = 0;
  // True if a shortage, as of descriptors, kept channels from opening.
  virtual bool lacked() const { return false; }

  const core::LinkSeed& seed() const { return seed_; }
  core::LinkHost& linkHost() { return host_; }
  const LinkContext& context() const { return context_; }
  std::span<const std::unique_ptr<Channel>> channels() const { return channels_; }
  void add(std::unique_ptr<Channel> channel);
  void moveTo(Channel& channel, std::size_t rail);
  Channel* find(std::uint32_t index, std::uint32_t life) const;
  ChannelLife newLife(std::uint32_t first) const { return {first, context_.retry}; }
  bool over() const { return over_here_; }
  bool anyUp() const { return countUp() > 0; }
  std::size_t countUp() const;

  void openNext(Channel& channel);  // only at the dialer
  // At the time `then` the link stops waiting for channels. It becomes ready with those that are
  // up, or fails if none is up.
  void readyBy(Clock::time_point then);
  void strike(Channel& channel, Error why);  // closes this end of a broken channel
  void fence(Channel& channel);
  void peerShut(Channel& channel, ShutReason reason, Error why);
  void peerOver(Error why);
  void fail(Error why);
  void end();
  Error linkError(Code code, std::string detail) const;

 private:
  struct OwnChannels {  // the channels of one rail
    std::vector<Channel*> all;
    std::size_t turn = 0;
  };
  void rest(Channel& channel);
  void giveBack(Channel& channel, const Error& why);
  void decide();
  bool allDecided() const;
  void finish();
  Error whyDown(const Channel& channel) const;
  std::string_view railName(const Channel& channel) const;

  const LinkContext context_;
  const core::LinkSeed seed_;
  core::LinkHost& host_;
  core::LinkState state_;
  Error why_;  // the reason while the link is not ready
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<OwnChannels> own_;  // indexed by rail
  bool over_here_ = false, over_there_ = false;
  base::Poller::Id deciding_ = 0;
};

}  // namespace viaduct::move
