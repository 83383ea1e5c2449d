// AgentImpl: its statistics.
#include <algorithm>
#include <string>

#include "agent/agent_impl.h"
#include "agent/peers/peer_impl.h"

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

Statistics AgentImpl::statistics() {
  const SectionsShut shut(rails_);  // threads in sections (move/sections.h) count in cells
  const Counts& counts = this->counts();
  Statistics out{.agent = settings_.name,
                 .endpoint = metrics_endpoint_,
                 .started = counts.started,
                 .done = counts.done,
                 .failed = counts.failed,
                 .cancelled = counts.cancelled,
                 .latencies = counts.timing.latencies(),
                 .rdma_ports = rdma_ports_,
                 .errors_without_rail = counts.errors_without_rail,
                 .notes_sent = counts.notes_sent,
                 .notes_received = counts.notes_received,
                 .sessions_lost = counts.sessions_lost,
                 .pins = pins_->live(),
                 .pinned_bytes = pins_->liveBytes(),
                 .lent = counts.lent,
                 .borrowed = counts.borrowed,
                 .stale = counts.stale,
                 .draining = drain_ != 0};
  for (const CellCounts& cell : rails_.allCellCounts()) {
    out.started += cell.done;
    out.done += cell.done;
    add(out.latencies, cell.timing.latencies());
  }
  std::vector<std::array<RailQueue, kPriorities>> queues(rails_.count());
  traffic_.forEach([&, now = now()](Posting& posting) { posting.addTo(queues, now); });
  for (const auto& backend : backends_.all()) {
    const std::vector<SocketStatistics> sockets = backend->sockets();
    for (std::size_t i = 0; i < backend->rails().size(); ++i) {
      const core::Rail& rail = *backend->rails()[i];
      RailStatistics& entry = entryOf(out.rails, backend->can().name, rail.name());
      const RailCounts of_rail = rails_.countsOf(rail);
      add(entry, of_rail);
      add(entry, queues[of_rail.number]);
      if (i < sockets.size()) entry.sockets = sockets[i];
    }
  }
  if (faults_) out.faults = faults_->counts();
  for (const auto& backend : backends_.all())
    out.links.push_back({.backend = std::string(backend->can().name)});
  for (const auto& peer : peers_.all()) {
    ++out.peers[static_cast<std::size_t>(peer->state())];
    peer->addTo(out.links);
  }
  return out;
}

}  // namespace viaduct::agent
