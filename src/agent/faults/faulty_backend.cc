#include "agent/faults/faulty_backend.h"

#include <string>
#include <utility>
#include <vector>

#include "agent/faults/faulty_link.h"
#include "agent/faults/faulty_rail.h"

namespace viaduct::agent {
namespace {

// One thread at a time polls its rails, because FaultSource has no lock.
core::Capabilities oneAtATime(core::Capabilities can) {
  can.side_by_side = false;
  return can;
}

class FaultyBackend final : public core::Backend {
 public:
  FaultyBackend(std::unique_ptr<core::Backend> inner, FaultSource& source)
      : inner_(std::move(inner)), can_(oneAtATime(inner_->can())) {
    for (const auto& rail : inner_->rails())
      rails_.push_back(std::make_unique<FaultyRail>(*rail, source, host_pins_));
    description_ = inner_->description();
    description_ += description_.empty() ? "" : ", ";
    description_ += "with faults of VIADUCT_FAULTS";
  }

  const core::Capabilities& can() const override { return can_; }
  std::shared_ptr<core::DeviceMemory> deviceMemory() override { return inner_->deviceMemory(); }
  std::shared_ptr<core::Storage> storage() override { return inner_->storage(); }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  std::vector<SocketStatistics> sockets() const override { return inner_->sockets(); }
  std::string_view description() const override { return description_; }
  core::Bytes address() const override { return inner_->address(); }
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& host) override {
    return std::make_unique<FaultyLink>(inner_->link(std::move(seed), host), host, rails_);
  }
  Result<core::Bytes> pinFor(const core::Audience& audience, std::uint32_t slot,
                             const Segment& memory) override {
    if (memory.kind == MemoryKind::kHost) host_pins_.insert(slot);
    return inner_->pinFor(audience, slot, memory);
  }
  Status unpin(std::uint32_t slot) override {
    host_pins_.erase(slot);
    return inner_->unpin(slot);
  }
  core::RailMask near(std::uint32_t slot) const override { return inner_->near(slot); }
  std::function<bool()> close() override { return inner_->close(); }

 private:
  const std::unique_ptr<core::Backend> inner_;
  const core::Capabilities can_;
  HostPins host_pins_;
  std::vector<std::unique_ptr<core::Rail>> rails_;
  std::string description_;
};

}  // namespace

std::unique_ptr<core::Backend> withFaults(std::unique_ptr<core::Backend> inner,
                                          FaultSource& source) {
  return std::make_unique<FaultyBackend>(std::move(inner), source);
}

}  // namespace viaduct::agent
