#include "move/staging/staging_backend.h"

#include <algorithm>
#include <utility>

#include "move/staging/staging_link.h"

namespace viaduct::move {

std::size_t StagingRail::post(const core::Work& work) {
  if (work.ops.empty() || jobs_.full(work.priority)) return 0;
  static_cast<StagingLink*>(work.link)->take(work);
  return work.ops.size();
}

void StagingRail::activate(StagingLink& link) {
  if (std::find(active_.begin(), active_.end(), &link) == active_.end()) active_.push_back(&link);
}

bool StagingRail::isFirst(const StagingLink& link) const {
  return std::none_of(links_.begin(), links_.end(), [&](const StagingLink* other) {
    return other->ticket() != 0 && (link.ticket() == 0 || other->ticket() < link.ticket());
  });
}

void StagingRail::recallRings() {
  for (StagingLink* const link : links_) link->recallRings();
}

void StagingRail::poll(core::Completions& out) {
  if (active_.empty()) return;
  if (std::any_of(active_.begin(), active_.end(),
                  [](const StagingLink* link) { return link->ticket() != 0; }))
    recallRings();
  for (StagingLink* const link : std::exchange(active_, {})) {
    if (link->busy()) link->progress(out);
    if (link->busy() || link->ticket() != 0) activate(*link);
  }
  jobs_.takeReports(out);
}

bool StagingRail::busy() const {
  return std::any_of(active_.begin(), active_.end(),
                     [](const StagingLink* link) { return link->busy(); });
}

// The network stage of a transfer may use any backend, so no property of the path is promised.
StagingBackend::StagingBackend(HostFor host_for)
    : can_{.name = kName,
           .memory = {MemoryKind::kDevice, MemoryKind::kFile, MemoryKind::kBlock,
                      MemoryKind::kObject},
           .own_memory = true,
           .tcp = true,
           .staged = true,
           .preference = 100},
      host_for_(std::move(host_for)) {
  rails_.push_back(std::make_unique<StagingRail>());
}

std::unique_ptr<core::Link> StagingBackend::link(core::LinkSeed seed, core::LinkHost& host) {
  return std::make_unique<StagingLink>(std::move(seed), static_cast<StagingRail&>(*rails_.front()),
                                       host, host_for_(host));
}

}  // namespace viaduct::move
