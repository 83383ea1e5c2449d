// A backend over a library that writes and reads one-sidedly: all of it but the library, of which
// it knows the Domains. docs/design/0010-one-skeleton-for-fabrics.md. Threads: under the agent's
// lock.
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

// What a library has been found to give.
struct Fabric {
  core::Capabilities can = {};
  std::string kind = {};                // both ends' are the same, or they do not fit together
  std::string description = {};         // "UCX 1.13.1 over tcp/eth0; UCX_TLS=tcp": what is in force
  std::vector<std::string> names = {};  // of the rails
  std::vector<std::unique_ptr<Domain>> domains = {};
  NearRails near = {};  // where nobody has named them
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
  Result<Bytes> pin(std::uint32_t slot, const Segment& memory) override;
  Status unpin(std::uint32_t slot) override;
  core::RailMask near(std::uint32_t slot) const override;

  std::size_t railCount() const { return rails_.size(); }
  const OwnPins& pins() const { return pins_; }
  Duration detect() const { return detect_; }
  const std::string& kind() const { return fabric_.kind; }
  LinkContext linkContext();
  FabricChannelSeed channelSeed(const Channel::Place& place, std::size_t key, PeerPins& remote);
  void forget(const FabricLink& link);

 private:
  Status openRails();
  core::RailMask nearestTo(const Segment& memory) const;

  base::Poller& poller_;
  const Duration detect_, spin_;
  Fabric fabric_;                 // its domains outlive what uses them
  std::vector<ProbeWord> words_;  // by rail
  OwnPins pins_;
  std::vector<Piece> scratch_;
  std::vector<std::unique_ptr<core::Rail>> rails_;
  std::vector<ChannelRail*> channel_rails_;
  std::vector<FabricLink*> links_;
};

}  // namespace viaduct::move
