// AgentImpl: its statistics.
#include <algorithm>
#include <string>

#include "agent/agent_impl.h"
#include "agent/peer_impl.h"

namespace viaduct::agent {
namespace {

// Two rails over one interface have one name. Their figures are added up.
RailStatistics& entryOf(std::vector<RailStatistics>& rails, std::string_view backend,
                        std::string_view rail) {
  const auto found = std::find_if(rails.begin(), rails.end(), [&](const RailStatistics& one) {
    return one.backend == backend && one.rail == rail;
  });
  if (found != rails.end()) return *found;
  return rails.emplace_back(
      RailStatistics{.backend = std::string(backend), .rail = std::string(rail)});
}

void add(RailStatistics& into, const RailCounts& counts) {
  into.bytes += counts.bytes;
  into.ops += counts.ops;
  into.times_set_aside += counts.times_set_aside;
  for (std::size_t code = 0; code < kCodes; ++code) into.errors[code] += counts.errors[code];
}

void add(RailStatistics& into, const std::array<RailQueue, kPriorities>& queues) {
  for (std::size_t i = 0; i < kPriorities; ++i) {
    into.queues[i].works += queues[i].works;
    into.queues[i].oldest = std::max(into.queues[i].oldest, queues[i].oldest);
  }
}

void add(Latencies& into, const Latencies& some) {
  for (std::size_t i = 0; i < Latencies::kBuckets; ++i) into.counts[i] += some.counts[i];
  into.sum += some.sum;
}

}  // namespace

// Returns the rail's counts together with those of transfers that were posted in sections.
RailCounts AgentImpl::railTotals(const core::Rail& rail) const {
  RailCounts total = run_rails_.at(&rail)->counts;
  for (const CellCounts& counts : cell_counts_) {
    total.bytes += counts.rails[total.number].bytes;
    total.ops += counts.rails[total.number].ops;
  }
  return total;
}

Statistics AgentImpl::statistics() {
  const SectionsShut shut(*this);  // threads in them count in their cells
  Statistics out{.agent = settings_.name,
                 .endpoint = metrics_endpoint_,
                 .started = counts_.started,
                 .done = counts_.done,
                 .failed = counts_.failed,
                 .cancelled = counts_.cancelled,
                 .latencies = counts_.timing.latencies(),
                 .errors_without_rail = counts_.errors_without_rail,
                 .notes_sent = counts_.notes_sent,
                 .notes_received = counts_.notes_received,
                 .sessions_lost = counts_.sessions_lost,
                 .pins = pins_->live(),
                 .pinned_bytes = pins_->liveBytes(),
                 .lent = counts_.lent,
                 .borrowed = counts_.borrowed,
                 .stale = counts_.stale};
  for (const CellCounts& counts : cell_counts_) {
    out.started += counts.done;
    out.done += counts.done;
    add(out.latencies, counts.timing.latencies());
  }
  std::vector<std::array<RailQueue, kPriorities>> queues(rails_.size());
  running_.forEach([&, now = now()](Posting& posting) { posting.addTo(queues, now); });
  for (const auto& backend : backends_)
    for (const auto& rail : backend->rails()) {
      RailStatistics& entry = entryOf(out.rails, backend->can().name, rail->name());
      const RailCounts counts = railTotals(*rail);
      add(entry, counts);
      add(entry, queues[counts.number]);
    }
  if (faults_) out.faults = faults_->counts();
  for (const auto& peer : peers_) ++out.peers[static_cast<std::size_t>(peer->state())];
  return out;
}

}  // namespace viaduct::agent
