// The link of a backend over a fabric library. Its two ends exchange the addresses of endpoints and
// the keys of memory over the session. Threads: under the agent's lock.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "move/channel_link.h"
#include "move/fabric_channel.h"
#include "move/own_pins.h"

namespace viaduct::move {

class FabricBackend;

class FabricLink final : public ChannelLink, public ChannelMessages {
 public:
  FabricLink(FabricBackend& backend, core::LinkSeed seed, core::LinkHost& host);
  ~FabricLink() override;
  FabricLink(const FabricLink&) = delete;
  FabricLink& operator=(const FabricLink&) = delete;

  void receive(std::span<const std::byte> message, std::vector<base::Fd> fds) override;
  void addPin(const core::RemotePin& pin) override;
  void dropPin(std::uint32_t slot) override;
  std::optional<std::string_view> reaches(OpKind kind, std::uint32_t local_pin,
                                          std::uint32_t remote_pin) const override;
  bool isPrivate() const override;  // as the user has declared the fabric

  // Withdraws our pin. If the peer has its key, this fences all channels, so that no write of the
  // peer reaches the memory any more.
  void withdraw(std::uint32_t slot);
  using ChannelLink::fence;

  void broke(Channel& channel) override;
  void tell(const FabricMessage& message) override;
  void askForKey(std::uint32_t slot) override;

 private:
  void handle(const OpenChannel& open);
  void handle(const ShutChannel& shut);
  void handle(const KeyRequest& ask);
  void handle(const KeyAnswer& key);
  void handle(const PingChannel& ping);
  void handle(const PollingNotice& polling);
  Status open(Channel& channel) override;
  Status answer(FabricChannel& channel, const OpenChannel& theirs);
  std::string readyText() override;
  void tellShut(const Channel* channel, ShutReason reason, const Error& why) override;
  void wakeJobs();
  const Registrations* keysFor(std::uint32_t slot, const OwnPin& pin);
  template <class F>
  void eachChannel(F f);

  FabricBackend& backend_;
  std::string transport_;
  PeerPins remote_;
  std::unordered_set<std::uint32_t> granted_;  // our slots whose keys the peer has requested
  std::unordered_map<std::uint32_t, Registrations> limited_;  // for a limited peer, by slot
};

}  // namespace viaduct::move
