#include "agent/metrics/statistics_text.h"

#include <viaduct/lease.h>
#include <viaduct/transfer.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace viaduct::agent {
namespace {

using base::MetricFamily;
using base::MetricLabels;
using base::MetricsWriter;

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

using FamilyWriter = base::FamilyWriter<Statistics>;

template <std::uint64_t Statistics::* kField>
void total(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  out.sample("_total", labels, from.*kField);
}

template <std::uint64_t Statistics::* kField>
void now(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  out.sample("", labels, from.*kField);
}

template <std::uint64_t RailStatistics::* kField>
void eachRail(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  const std::size_t common = labels.size();
  for (const RailStatistics& rail : from.rails) {
    labels.resize(common);
    labels.push_back({"backend", rail.backend});
    labels.push_back({"rail", rail.rail});
    out.sample("_total", labels, rail.*kField);
  }
}

// Writes a sample for each rail that has TCP sockets of its own.
template <class Value>
void eachRailsSockets(const Statistics& from, MetricLabels labels, std::string_view suffix,
                      MetricsWriter& out, Value value) {
  const std::size_t common = labels.size();
  for (const RailStatistics& rail : from.rails) {
    if (!rail.sockets) continue;
    labels.resize(common);
    labels.push_back({"backend", rail.backend});
    labels.push_back({"rail", rail.rail});
    out.sample(suffix, labels, value(*rail.sockets));
  }
}

template <std::uint64_t SocketStatistics::* kField>
void socketTotal(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  eachRailsSockets(from, std::move(labels), "_total", out,
                   [](const SocketStatistics& of) { return of.*kField; });
}

template <std::uint64_t SocketStatistics::* kField>
void socketsNow(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  eachRailsSockets(from, std::move(labels), "", out,
                   [](const SocketStatistics& of) { return of.*kField; });
}

void writeSealing(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  eachRailsSockets(from, std::move(labels), "_total", out,
                   [](const SocketStatistics& of) { return seconds(of.sealing); });
}

template <class Value>
void eachQueue(const Statistics& from, MetricLabels labels, MetricsWriter& out, Value value) {
  const std::size_t common = labels.size();
  for (const RailStatistics& rail : from.rails)
    for (std::size_t i = 0; i < kPriorities; ++i) {
      labels.resize(common);
      labels.push_back({"backend", rail.backend});
      labels.push_back({"rail", rail.rail});
      labels.push_back({"class", priorityName(static_cast<Priority>(i))});
      out.sample("", labels, value(rail.queues[i]));
    }
}

void writeQueues(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  eachQueue(from, std::move(labels), out, [](const RailQueue& queue) { return queue.works; });
}

void writeOldest(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  eachQueue(from, std::move(labels), out,
            [](const RailQueue& queue) { return seconds(queue.oldest); });
}

void writeInfo(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  labels.push_back({"endpoint", from.endpoint});
  out.sample("_info", labels, std::uint64_t{1});
}

void writeEnded(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  labels.push_back({"state", {}});
  for (const auto& [state, count] :
       {std::pair(TransferState::kDone, from.done), std::pair(TransferState::kFailed, from.failed),
        std::pair(TransferState::kCancelled, from.cancelled)}) {
    labels.back().value = transferStateName(state);
    out.sample("_total", labels, count);
  }
}

void writeLatencies(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  const Latencies& latencies = from.latencies;
  MetricLabels with_bound = labels;
  with_bound.push_back({"le", {}});
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < Latencies::kBuckets; ++i) {
    below += latencies.counts[i];
    const bool last = i == Latencies::kBounds.size();
    const std::string bound = base::metricNumber(last ? HUGE_VAL : seconds(Latencies::kBounds[i]));
    with_bound.back().value = bound;
    out.sample("_bucket", with_bound, below);
  }
  out.sample("_count", labels, below);
  out.sample("_sum", labels, seconds(latencies.sum));
}

void writeErrors(MetricLabels labels, const std::array<std::uint64_t, kCodes>& errors,
                 std::string_view backend, std::string_view rail, MetricsWriter& out) {
  labels.push_back({"backend", backend});
  labels.push_back({"rail", rail});
  labels.push_back({"cause", {}});
  for (std::size_t code = 0; code < kCodes; ++code) {
    // A transfer that is cancelled by its user is no error.
    if (static_cast<Code>(code) == Code::kCancelled) continue;
    labels.back().value = codeName(static_cast<Code>(code));
    out.sample("_total", labels, errors[code]);
  }
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature that kRows asks for
void writeAllErrors(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  for (const RailStatistics& rail : from.rails)
    writeErrors(labels, rail.errors, rail.backend, rail.rail, out);
  writeErrors(labels, from.errors_without_rail, "none", "none", out);
}

void writeLinks(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  labels.push_back({"backend", {}});
  labels.push_back({"state", {}});
  for (const LinkStatistics& links : from.links)
    for (const auto& [state, count] :
         {std::pair("usable", links.usable), std::pair("unusable", links.unusable)}) {
      labels[labels.size() - 2].value = links.backend;
      labels.back().value = state;
      out.sample("", labels, count);
    }
}

// Levels that no link has are left out: most agents have links of one level.
void writeProtections(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  labels.push_back({"backend", {}});
  labels.push_back({"protection", {}});
  for (const LinkStatistics& links : from.links)
    for (std::size_t level = 0; level < kPrivacies; ++level) {
      if (links.protections[level] == 0) continue;
      labels[labels.size() - 2].value = links.backend;
      labels.back().value = privacyName(static_cast<Privacy>(level));
      out.sample("", labels, links.protections[level]);
    }
}

void writePeers(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  labels.push_back({"state", {}});
  for (std::size_t state = 0; state < kPeerStates; ++state) {
    labels.back().value = peerStateName(static_cast<PeerState>(state));
    out.sample("", labels, from.peers[state]);
  }
}

void writeDraining(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  out.sample("", labels, std::uint64_t{from.draining});
}

// Writes nothing for an agent that injects no faults.
void writeFaults(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  if (!from.faults) return;
  labels.push_back({"kind", {}});
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    labels.back().value = faultKindName(static_cast<FaultKind>(kind));
    out.sample("_total", labels, (*from.faults)[kind]);
  }
}

void writeLeases(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  labels.push_back({"end", {}});
  for (const auto& [end, leases] :
       {std::pair("lent", from.lent), std::pair("borrowed", from.borrowed)}) {
    labels.back().value = end;
    out.sample("", labels, leases.live);
  }
}

void writeEndedLeases(const Statistics& from, MetricLabels labels, MetricsWriter& out) {
  labels.push_back({"end", {}});
  labels.push_back({"outcome", {}});
  for (const auto& [end, leases] :
       {std::pair("lent", from.lent), std::pair("borrowed", from.borrowed)}) {
    labels[labels.size() - 2].value = end;
    for (const auto& [outcome, count] : {std::pair(LeaseState::kReturned, leases.returned),
                                         std::pair(LeaseState::kExpired, leases.expired),
                                         std::pair(LeaseState::kRevoked, leases.revoked),
                                         std::pair(LeaseState::kPeerLost, leases.peer_lost)}) {
      labels.back().value = leaseStateName(outcome);
      out.sample("_total", labels, count);
    }
  }
}

constexpr std::array kRows{
    FamilyWriter{{"viaduct_agent", "info", "", "An agent, and the address of its metrics."},
                 writeInfo},
    FamilyWriter{{"viaduct_transfers_started", "counter", "", "Posts of transfers."},
                 total<&Statistics::started>},
    FamilyWriter{{"viaduct_transfers_ended", "counter", "", "Posts of transfers that have ended."},
                 writeEnded},
    FamilyWriter{{"viaduct_transfer_seconds", "histogram", "seconds",
                  "Time from a post to its end, of transfers that are done."},
                 writeLatencies},
    FamilyWriter{
        {"viaduct_moved_bytes", "counter", "bytes", "Bytes that posts have moved when they ended."},
        eachRail<&RailStatistics::bytes>},
    FamilyWriter{{"viaduct_moved_ops", "counter", "", "Contiguous copies of these posts."},
                 eachRail<&RailStatistics::ops>},
    FamilyWriter{{"viaduct_errors", "counter", "",
                  "Parts of transfers that failed on a rail. Another rail may have repeated them."},
                 writeAllErrors},
    FamilyWriter{{"viaduct_rails_set_aside", "counter", "",
                  "How often a rail was set aside because it had failed again and again."},
                 eachRail<&RailStatistics::times_set_aside>},
    FamilyWriter{{"viaduct_rail_works", "gauge", "",
                  "Parts of running transfers that a rail has, by class of priority."},
                 writeQueues},
    FamilyWriter{{"viaduct_rail_oldest_seconds", "gauge", "seconds",
                  "Time since the post of the oldest of these transfers."},
                 writeOldest},
    FamilyWriter{{"viaduct_sockets", "gauge", "", "TCP sockets that a rail has."},
                 socketsNow<&SocketStatistics::sockets>},
    FamilyWriter{{"viaduct_sent_segments", "counter", "",
                  "TCP segments that a rail has sent, with those that it repeated."},
                 socketTotal<&SocketStatistics::sent_segments>},
    FamilyWriter{{"viaduct_repeated_segments", "counter", "",
                  "TCP segments that a rail has sent again, because the network had lost them."},
                 socketTotal<&SocketStatistics::repeated_segments>},
    FamilyWriter{{"viaduct_sealing_seconds", "counter", "seconds",
                  "Processor time in which a rail sealed and opened protected data, estimated."},
                 writeSealing},
    FamilyWriter{
        {"viaduct_links", "gauge", "",
         "Links to ready peers. An unusable one should reach its peer, and another backend "
         "moves the bytes."},
        writeLinks},
    FamilyWriter{{"viaduct_protected_links", "gauge", "",
                  "Usable links of backends that protect data, by the protection in force."},
                 writeProtections},
    FamilyWriter{{"viaduct_rdma_ports", "gauge", "",
                  "RDMA ports of the host, also if no backend of the agent uses them."},
                 now<&Statistics::rdma_ports>},
    FamilyWriter{{"viaduct_notes_sent", "counter", "", "Notes sent."},
                 total<&Statistics::notes_sent>},
    FamilyWriter{{"viaduct_notes_received", "counter", "", "Notes received."},
                 total<&Statistics::notes_received>},
    FamilyWriter{{"viaduct_sessions_lost", "counter", "",
                  "Sessions that ended because the peer died, froze or could not be reached."},
                 total<&Statistics::sessions_lost>},
    FamilyWriter{{"viaduct_peers", "gauge", "", "Peers that the agent knows."}, writePeers},
    FamilyWriter{{"viaduct_draining", "gauge", "", "1 while the agent drains, otherwise 0."},
                 writeDraining},
    FamilyWriter{{"viaduct_pins", "gauge", "", "Registered pieces of memory."},
                 now<&Statistics::pins>},
    FamilyWriter{{"viaduct_pinned_bytes", "gauge", "bytes", "Bytes of registered memory."},
                 now<&Statistics::pinned_bytes>},
    FamilyWriter{{"viaduct_leases", "gauge", "", "Leases that are live."}, writeLeases},
    FamilyWriter{{"viaduct_leases_ended", "counter", "", "Leases that have ended."},
                 writeEndedLeases},
    FamilyWriter{
        {"viaduct_stale", "counter", "",
         "Posts and tickets that came after the end of their lease, and posts that it ended."},
        total<&Statistics::stale>},
    FamilyWriter{{"viaduct_faults", "counter", "", "Faults that VIADUCT_FAULTS has injected."},
                 writeFaults},
};

constexpr auto kFamilies = base::familiesOf(kRows);

}  // namespace

std::span<const MetricFamily> metricFamilies() { return kFamilies; }

std::string statisticsText(const Statistics& statistics, int pid) {
  const std::string process = std::to_string(pid);
  const MetricLabels labels{{"agent", statistics.agent}, {"pid", process}};
  return base::metricsText(kRows, statistics, labels);
}

}  // namespace viaduct::agent
