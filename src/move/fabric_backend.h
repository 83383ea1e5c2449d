// The part of a backend that is common to all fabric libraries with one-sided writes and reads. It
// knows a library by its Domains only (docs/design/0010-one-skeleton-for-fabrics.md). Threads:
// under the agent's lock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"
#include "move/channel_link.h"
#include "move/fabric_channel.h"
#include "move/near_rails.h"

namespace viaduct::move {

class FabricLink;

// A library's capabilities, and the devices that a backend has opened with it.
struct Fabric {
  core::Capabilities can = {};
  std::string kind = {};                // two ends connect only if their kinds are equal
  std::string description = {};         // "UCX 1.13.1 over tcp/eth0; UCX_TLS=tcp"
  std::vector<std::string> names = {};  // names of the rails
  std::vector<std::unique_ptr<Domain>> domains = {};
  NearRails near = {};  // set if the user has named no rails
};

class FabricBackend final : public core::Backend {
 public:
  static Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context,
                                                     Fabric fabric);
  FabricBackend(const core::BackendContext& context, Fabric fabric);
  ~FabricBackend() override;
  FabricBackend(const FabricBackend&) = delete;
  FabricBackend& operator=(const FabricBackend&) = delete;

  const core::Capabilities& can() const override { return fabric_.can; }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  std::string_view description() const override { return fabric_.description; }
  Bytes address() const override;
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& host) override;
  Result<Bytes> pinFor(const core::Audience& audience, std::uint32_t slot,
                       const Segment& memory) override;
  Status unpin(std::uint32_t slot) override;
  core::RailMask near(std::uint32_t slot) const override;

  std::size_t railCount() const { return rails_.size(); }
  const OwnPins& pins() const { return pins_; }
  // Registers the memory of a pin again, for a peer with this right.
  Result<Registrations> registerFor(const OwnPin& pin, const core::PinRight& right) const;
  Duration detect() const { return detect_; }
  bool isPrivate() const { return is_private_; }
  const std::string& kind() const { return fabric_.kind; }
  LinkContext linkContext();
  FabricChannelSeed channelSeed(const Channel::Position& place, std::size_t key, PeerPins& remote);
  void forget(const FabricLink& link);

 private:
  Status openRails();
  Result<Registrations> registerAt(const MemoryRange& range) const;
  core::RailMask nearestTo(const Segment& memory) const;

  base::Poller& poller_;
  const Duration detect_, spin_;
  const bool is_private_;         // Settings::fabric_is_private
  Fabric fabric_;                 // before the members that use its domains
  std::vector<ProbeWord> words_;  // indexed by rail
  OwnPins pins_;
  std::vector<std::vector<Piece>> scratch_;  // indexed by rail
  std::vector<std::unique_ptr<core::Rail>> rails_;
  std::vector<ChannelRail*> channel_rails_;
  std::vector<FabricLink*> links_;
};

}  // namespace viaduct::move
