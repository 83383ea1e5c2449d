#include "agent/metrics/statistics_text.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "base/open_metrics.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

Statistics filled() {
  Statistics out{
      .agent = "prefill \"0\"",
      .endpoint = "127.0.0.1:27180",
      .started = 9,
      .done = 5,
      .failed = 2,
      .cancelled = 1,
      .notes_sent = 3,
      .notes_received = 4,
      .sessions_lost = 6,
      .pins = 7,
      .pinned_bytes = 8192,
      .lent = {.live = 11, .returned = 12, .expired = 13, .revoked = 14, .peer_lost = 15},
      .borrowed = {.live = 16, .returned = 17},
      .stale = 18,
      .faults = {{0, 0, 3, 0, 0}}};
  out.latencies.add(150ns, 1);
  out.latencies.add(3us, 3);
  out.latencies.add(70s, 1);
  out.rails.push_back({.backend = "tcp", .rail = "eth0", .bytes = 1024, .ops = 2});
  out.rails[0].times_set_aside = 1;
  out.rails[0].queues[static_cast<std::size_t>(Priority::kBackground)] = {.works = 3,
                                                                          .oldest = 1500ms};
  out.rails[0].errors[static_cast<std::size_t>(Code::kPeerLost)] = 2;
  out.rails[0].sockets = {
      {.sockets = 2, .sent_segments = 1000, .repeated_segments = 7, .sealing = 2500ms}};
  out.rails.push_back({.backend = "local", .rail = "memory"});
  out.links.push_back({.backend = "tcp", .usable = 4, .unusable = 3});
  out.links[0].protections[static_cast<std::size_t>(Privacy::kFrames)] = 3;
  out.links[0].protections[static_cast<std::size_t>(Privacy::kEncrypted)] = 1;
  out.rdma_ports = 8;
  out.errors_without_rail[static_cast<std::size_t>(Code::kTimeout)] = 1;
  out.peers[static_cast<std::size_t>(PeerState::kReady)] = 10'000;
  out.draining = true;
  return out;
}

// The lines of each family, with only the first, the fourth and the last bucket.
constexpr std::string_view kGolden = R"(# TYPE viaduct_agent info
# HELP viaduct_agent An agent, and the address of its metrics.
viaduct_agent_info{agent="prefill \"0\"",pid="42",endpoint="127.0.0.1:27180"} 1
# TYPE viaduct_transfers_started counter
# HELP viaduct_transfers_started Posts of transfers.
viaduct_transfers_started_total{agent="prefill \"0\"",pid="42"} 9
# TYPE viaduct_transfers_ended counter
# HELP viaduct_transfers_ended Posts of transfers that have ended.
viaduct_transfers_ended_total{agent="prefill \"0\"",pid="42",state="done"} 5
viaduct_transfers_ended_total{agent="prefill \"0\"",pid="42",state="failed"} 2
viaduct_transfers_ended_total{agent="prefill \"0\"",pid="42",state="cancelled"} 1
# TYPE viaduct_transfer_seconds histogram
# UNIT viaduct_transfer_seconds seconds
# HELP viaduct_transfer_seconds Time from a post to its end, of transfers that are done.
viaduct_transfer_seconds_bucket{agent="prefill \"0\"",pid="42",le="2e-07"} 1
viaduct_transfer_seconds_bucket{agent="prefill \"0\"",pid="42",le="5e-06"} 4
viaduct_transfer_seconds_bucket{agent="prefill \"0\"",pid="42",le="50.0"} 4
viaduct_transfer_seconds_bucket{agent="prefill \"0\"",pid="42",le="+Inf"} 5
viaduct_transfer_seconds_count{agent="prefill \"0\"",pid="42"} 5
viaduct_transfer_seconds_sum{agent="prefill \"0\"",pid="42"} 70.00000915
# TYPE viaduct_moved_bytes counter
# UNIT viaduct_moved_bytes bytes
# HELP viaduct_moved_bytes Bytes that posts have moved when they ended.
viaduct_moved_bytes_total{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0"} 1024
viaduct_moved_bytes_total{agent="prefill \"0\"",pid="42",backend="local",rail="memory"} 0
# TYPE viaduct_moved_ops counter
# HELP viaduct_moved_ops Contiguous copies of these posts.
viaduct_moved_ops_total{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0"} 2
viaduct_moved_ops_total{agent="prefill \"0\"",pid="42",backend="local",rail="memory"} 0
# TYPE viaduct_errors counter
# HELP viaduct_errors Parts of transfers that failed on a rail. Another rail may have repeated them.
viaduct_errors_total{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0",cause="peer lost"} 2
viaduct_errors_total{agent="prefill \"0\"",pid="42",backend="none",rail="none",cause="timed out"} 1
# TYPE viaduct_rails_set_aside counter
# HELP viaduct_rails_set_aside How often a rail was set aside because it had failed again and again.
viaduct_rails_set_aside_total{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0"} 1
viaduct_rails_set_aside_total{agent="prefill \"0\"",pid="42",backend="local",rail="memory"} 0
# TYPE viaduct_rail_works gauge
# HELP viaduct_rail_works Parts of running transfers that a rail has, by class of priority.
viaduct_rail_works{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0",class="urgent"} 0
viaduct_rail_works{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0",class="normal"} 0
viaduct_rail_works{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0",class="background"} 3
viaduct_rail_works{agent="prefill \"0\"",pid="42",backend="local",rail="memory",class="urgent"} 0
viaduct_rail_works{agent="prefill \"0\"",pid="42",backend="local",rail="memory",class="normal"} 0
viaduct_rail_works{agent="prefill \"0\"",pid="42",backend="local",rail="memory",class="background"} 0
# TYPE viaduct_rail_oldest_seconds gauge
# UNIT viaduct_rail_oldest_seconds seconds
# HELP viaduct_rail_oldest_seconds Time since the post of the oldest of these transfers.
viaduct_rail_oldest_seconds{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0",class="urgent"} 0.0
viaduct_rail_oldest_seconds{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0",class="normal"} 0.0
viaduct_rail_oldest_seconds{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0",class="background"} 1.5
viaduct_rail_oldest_seconds{agent="prefill \"0\"",pid="42",backend="local",rail="memory",class="urgent"} 0.0
viaduct_rail_oldest_seconds{agent="prefill \"0\"",pid="42",backend="local",rail="memory",class="normal"} 0.0
viaduct_rail_oldest_seconds{agent="prefill \"0\"",pid="42",backend="local",rail="memory",class="background"} 0.0
# TYPE viaduct_sockets gauge
# HELP viaduct_sockets TCP sockets that a rail has.
viaduct_sockets{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0"} 2
# TYPE viaduct_sent_segments counter
# HELP viaduct_sent_segments TCP segments that a rail has sent, with those that it repeated.
viaduct_sent_segments_total{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0"} 1000
# TYPE viaduct_repeated_segments counter
# HELP viaduct_repeated_segments TCP segments that a rail has sent again, because the network had lost them.
viaduct_repeated_segments_total{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0"} 7
# TYPE viaduct_sealing_seconds counter
# UNIT viaduct_sealing_seconds seconds
# HELP viaduct_sealing_seconds Processor time in which a rail sealed and opened protected data, estimated.
viaduct_sealing_seconds_total{agent="prefill \"0\"",pid="42",backend="tcp",rail="eth0"} 2.5
# TYPE viaduct_links gauge
# HELP viaduct_links Links to ready peers. An unusable one should reach its peer, and another backend moves the bytes.
viaduct_links{agent="prefill \"0\"",pid="42",backend="tcp",state="usable"} 4
viaduct_links{agent="prefill \"0\"",pid="42",backend="tcp",state="unusable"} 3
# TYPE viaduct_protected_links gauge
# HELP viaduct_protected_links Usable links of backends that protect data, by the protection in force.
viaduct_protected_links{agent="prefill \"0\"",pid="42",backend="tcp",protection="frames"} 3
viaduct_protected_links{agent="prefill \"0\"",pid="42",backend="tcp",protection="encrypted"} 1
# TYPE viaduct_rdma_ports gauge
# HELP viaduct_rdma_ports RDMA ports of the host, also if no backend of the agent uses them.
viaduct_rdma_ports{agent="prefill \"0\"",pid="42"} 8
# TYPE viaduct_notes_sent counter
# HELP viaduct_notes_sent Notes sent.
viaduct_notes_sent_total{agent="prefill \"0\"",pid="42"} 3
# TYPE viaduct_notes_received counter
# HELP viaduct_notes_received Notes received.
viaduct_notes_received_total{agent="prefill \"0\"",pid="42"} 4
# TYPE viaduct_sessions_lost counter
# HELP viaduct_sessions_lost Sessions that ended because the peer died, froze or could not be reached.
viaduct_sessions_lost_total{agent="prefill \"0\"",pid="42"} 6
# TYPE viaduct_peers gauge
# HELP viaduct_peers Peers that the agent knows.
viaduct_peers{agent="prefill \"0\"",pid="42",state="connecting"} 0
viaduct_peers{agent="prefill \"0\"",pid="42",state="ready"} 10000
viaduct_peers{agent="prefill \"0\"",pid="42",state="lost"} 0
viaduct_peers{agent="prefill \"0\"",pid="42",state="gone"} 0
viaduct_peers{agent="prefill \"0\"",pid="42",state="draining"} 0
# TYPE viaduct_draining gauge
# HELP viaduct_draining 1 while the agent drains, otherwise 0.
viaduct_draining{agent="prefill \"0\"",pid="42"} 1
# TYPE viaduct_pins gauge
# HELP viaduct_pins Registered pieces of memory.
viaduct_pins{agent="prefill \"0\"",pid="42"} 7
# TYPE viaduct_pinned_bytes gauge
# UNIT viaduct_pinned_bytes bytes
# HELP viaduct_pinned_bytes Bytes of registered memory.
viaduct_pinned_bytes{agent="prefill \"0\"",pid="42"} 8192
# TYPE viaduct_leases gauge
# HELP viaduct_leases Leases that are live.
viaduct_leases{agent="prefill \"0\"",pid="42",end="lent"} 11
viaduct_leases{agent="prefill \"0\"",pid="42",end="borrowed"} 16
# TYPE viaduct_leases_ended counter
# HELP viaduct_leases_ended Leases that have ended.
viaduct_leases_ended_total{agent="prefill \"0\"",pid="42",end="lent",outcome="returned"} 12
viaduct_leases_ended_total{agent="prefill \"0\"",pid="42",end="lent",outcome="expired"} 13
viaduct_leases_ended_total{agent="prefill \"0\"",pid="42",end="lent",outcome="revoked"} 14
viaduct_leases_ended_total{agent="prefill \"0\"",pid="42",end="lent",outcome="peer lost"} 15
viaduct_leases_ended_total{agent="prefill \"0\"",pid="42",end="borrowed",outcome="returned"} 17
viaduct_leases_ended_total{agent="prefill \"0\"",pid="42",end="borrowed",outcome="expired"} 0
viaduct_leases_ended_total{agent="prefill \"0\"",pid="42",end="borrowed",outcome="revoked"} 0
viaduct_leases_ended_total{agent="prefill \"0\"",pid="42",end="borrowed",outcome="peer lost"} 0
# TYPE viaduct_stale counter
# HELP viaduct_stale Posts and tickets that came after the end of their lease, and posts that it ended.
viaduct_stale_total{agent="prefill \"0\"",pid="42"} 18
# TYPE viaduct_faults counter
# HELP viaduct_faults Faults that VIADUCT_FAULTS has injected.
viaduct_faults_total{agent="prefill \"0\"",pid="42",kind="delay"} 0
viaduct_faults_total{agent="prefill \"0\"",pid="42",kind="stop"} 0
viaduct_faults_total{agent="prefill \"0\"",pid="42",kind="corrupt"} 3
viaduct_faults_total{agent="prefill \"0\"",pid="42",kind="drop-rail"} 0
viaduct_faults_total{agent="prefill \"0\"",pid="42",kind="kill-peer"} 0
viaduct_faults_total{agent="prefill \"0\"",pid="42",kind="late-lease"} 0
# EOF
)";

bool isShown(const std::string& line) {
  const bool bucket = line.find("_bucket") != std::string::npos;
  const bool error = line.starts_with("viaduct_errors_total");
  const auto has = [&](const char* part) { return line.find(part) != std::string::npos; };
  if (bucket) return has("le=\"2e-07\"") || has("le=\"5e-06\"") || has("50.0") || has("Inf");
  return !error || !line.ends_with(" 0");
}

TEST(StatisticsText, IsOpenMetricsWithTypesUnitsAndEscapedLabels) {
  std::istringstream all(statisticsText(filled(), 42));
  std::string shown;
  for (std::string line; std::getline(all, line);)
    if (isShown(line)) shown += line + "\n";
  EXPECT_EQ(shown, kGolden);
}

TEST(StatisticsText, HasASeriesForEachErrorAndEachBucket) {
  const auto samples = base::readMetrics(statisticsText(filled(), 42));
  std::size_t errors = 0, buckets = 0;
  for (const base::MetricSample& sample : samples) {
    errors += sample.name == "viaduct_errors_total" ? 1 : 0;
    buckets += sample.name == "viaduct_transfer_seconds_bucket" ? 1 : 0;
  }
  EXPECT_EQ(errors, 3 * (kCodes - 1));
  EXPECT_EQ(buckets, Latencies::kBuckets);
}

TEST(StatisticsText, KeepsTheRulesForNames) {
  std::set<std::string_view> names;
  for (const base::MetricFamily& family : metricFamilies()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_TRUE(family.name.starts_with("viaduct_"));
    EXPECT_FALSE(family.name.ends_with("_total"));
    EXPECT_TRUE(family.unit.empty() || family.name.ends_with(family.unit)) << family.name;
    EXPECT_TRUE(family.help.ends_with('.')) << family.help;
  }
}

}  // namespace
}  // namespace viaduct::agent
