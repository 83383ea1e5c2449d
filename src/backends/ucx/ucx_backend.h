// Moves bytes by UCX's put and get. NOTES.md says what holds, and what UCX does not give. Threads:
// under the agent's lock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/ucx/channel.h"
#include "core/backend.h"

namespace viaduct::ucx {

class UcxLink;
class UcxRail;

class UcxBackend final : public core::Backend {
 public:
  explicit UcxBackend(const core::BackendContext& context);
  ~UcxBackend() override;
  UcxBackend(const UcxBackend&) = delete;
  UcxBackend& operator=(const UcxBackend&) = delete;
  Status open(const Settings& settings);

  const core::Capabilities& can() const override { return can_; }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  core::Bytes address() const override;
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& host) override;
  Result<core::Bytes> pin(std::uint32_t slot, const Segment& memory) override;
  Status unpin(std::uint32_t slot) override;

  std::size_t railCount() const { return rails_.size(); }
  std::span<UcxRail* const> ucxRails() const { return ucx_rails_; }
  const OwnPins& pins() const { return pins_; }
  base::Poller& poller() { return poller_; }
  Duration detect() const { return detect_; }
  // "UCX 1.13.1 over tcp/eth0; UCX_TLS=tcp": what is in force.
  const std::string& describe() const { return description_; }
  ChannelSeed channelSeed(std::size_t rail, std::size_t key, std::uint32_t index,
                          RemotePins& remote) const;
  void forget(const UcxLink& link);

 private:
  // What is open for one rail.
  struct Ground {
    std::unique_ptr<Context> context;
    std::unique_ptr<std::uint64_t> word;  // that peers' probes write
    std::unique_ptr<Registration> word_registered;
    Probe probe;
  };
  Status addRail(std::string name, std::unique_ptr<Context> context);
  void describe(const Library& ucx);

  base::Poller& poller_;
  const Duration detect_, spin_;
  core::Capabilities can_;
  std::string description_;
  std::vector<Ground> grounds_;  // by rail; outlives what uses it
  OwnPins pins_;
  std::vector<std::unique_ptr<core::Rail>> rails_;
  std::vector<UcxRail*> ucx_rails_;
  std::vector<UcxLink*> links_;
};

}  // namespace viaduct::ucx
