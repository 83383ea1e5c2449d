// The backend of staged transfers. It has no devices: the agent's other backends do each stage.
// Threads: under the agent's exclusive lock.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "move/job_table.h"
#include "move/staging/staging_host.h"

namespace viaduct::move {

class StagingLink;

class StagingRail final : public core::Rail {
 public:
  std::string_view name() const override { return "staging"; }
  std::size_t post(const core::Work& work) override;
  void poll(core::Completions& out) override;
  void cancel(const core::Sink& sink) override { jobs_.cancel(sink); }
  bool busy() const override;

  JobTable& jobs() { return jobs_; }
  void add(StagingLink& link) { links_.push_back(&link); }
  void remove(StagingLink& link) {
    std::erase(links_, &link);
    std::erase(active_, &link);
  }
  // The next poll() calls the link's progress().
  void activate(StagingLink& link);
  // Links that wait for memory of a ring get it in the order of their tickets, and before others.
  std::uint64_t newTicket() { return ++last_ticket_; }
  bool isFirst(const StagingLink& link) const;
  // Recalls the rings of all links, because a link waits for memory. poll() repeats this while a
  // link waits.
  void recallRings();

 private:
  JobTable jobs_;
  std::vector<StagingLink*> links_;
  std::vector<StagingLink*> active_;  // so that idle peers cost nothing
  std::uint64_t last_ticket_ = 0;
};

class StagingBackend final : public core::Backend {
 public:
  static constexpr std::string_view kName = "staged";
  using HostFor = std::function<std::unique_ptr<StagingHost>(core::LinkHost& session)>;
  explicit StagingBackend(HostFor host_for);

  const core::Capabilities& can() const override { return can_; }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return rails_; }
  core::Bytes address() const override { return {}; }
  std::unique_ptr<core::Link> link(core::LinkSeed seed, core::LinkHost& host) override;
  // A key without bytes tells peers that the pin has to be staged.
  Result<core::Bytes> pinFor(const core::Audience& /*audience*/, std::uint32_t /*slot*/,
                             const Segment& /*memory*/) override {
    return core::Bytes{};
  }
  Status unpin(std::uint32_t /*slot*/) override { return Ok{}; }

 private:
  const core::Capabilities can_;
  const HostFor host_for_;
  std::vector<std::unique_ptr<core::Rail>> rails_;
};

}  // namespace viaduct::move
