// The counts from which a row's figures follow: row_figures.h has the rules, and docs/results.md
// defines each field. Threads: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::measure {

// Bytes, and the time in which they moved.
struct TimedBytes {
  std::uint64_t bytes = 0;
  double seconds = 0;
  // Returns the rate in 10^9 bytes a second.
  double rate() const { return seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0; }
  void add(const TimedBytes& next) {
    bytes += next.bytes;
    seconds += next.seconds;
  }
  friend bool operator==(const TimedBytes&, const TimedBytes&) = default;
};

// The values that a Histogram has recorded.
struct Distribution {
  std::uint64_t min = 0, max = 0;
  double sum = 0;
  // The filled buckets, in order. "813x12 1 2x3": 813 empty buckets, one with 12 values, one with
  // 1 value, 2 empty buckets, and one with 3 values.
  std::string buckets = {};
  friend bool operator==(const Distribution&, const Distribution&) = default;
};

struct RepeatCounts {
  TimedBytes whole = {};  // of all streams, from the first start to the last end
  std::vector<TimedBytes> parts = {};
  friend bool operator==(const RepeatCounts&, const RepeatCounts&) = default;
};

// One member's counts. RowCounts has its members by rank.
struct MemberCounts {
  bool initiator = false;
  std::uint32_t host = 0;                    // the lowest rank on the member's host
  std::uint32_t in_process = 1;              // members that share its process
  std::uint64_t timed = 0, timed_bytes = 0;  // transfers of its streams, in one direction
  std::uint64_t transfers = 0, bytes = 0;    // on its path, timed or not
  std::uint64_t background = 0;              // background transfers beside the streams
  double background_gb_per_s = 0;
  double background_gap_s = 0;             // longest time between completions of a pair
  std::uint64_t checks = 0, missed = 0;    // checked transfers, and how many were wrong
  bool wrong = false;                      // some bytes were wrong
  std::uint64_t ops = 0, words = 0;        // KV rows: ops of a transfer, and checked words
  double cpu_s = 0, counted_s = 0;         // CPU time of its process within counted_s
  double sealing_s = 0;                    // CPU time of sealing and opening, of all transfers
  double machine_cpu_s = 0;                // CPU time of its whole host in counted_s
  double machine_idle_s = 0;               // of all processors of its host in counted_s
  std::uint32_t processors = 0;            // number on its host; 0: unknown
  double clock_s = 0, second_clock_s = 0;  // the same time by two clocks
  friend bool operator==(const MemberCounts&, const MemberCounts&) = default;
};

// The bytes that the counters of a device show for the row.
struct DeviceCounts {
  std::string host = {}, device = {};
  std::optional<std::uint64_t> sent = {}, received = {};
  double sent_by_others = 0, received_by_others = 0;  // expected from the time before the row
  friend bool operator==(const DeviceCounts&, const DeviceCounts&) = default;
};

// The bytes that devices of one host counted in one direction, and the payload that had to pass
// them.
struct CountedPayload {
  std::string host = {}, devices = {};  // "eth0+eth1"
  bool sent = true;                     // false: received
  double counted = 0, others = 0, payload = 0;
  friend bool operator==(const CountedPayload&, const CountedPayload&) = default;
};

struct RowCounts {
  std::uint32_t streams = 1;
  bool echo = false;         // each timed transfer moved in both directions
  bool all_checked = false;  // every transfer was checked
  double checking_s = 0;     // time for short runs, for new contents, and for comparing them
  std::vector<RepeatCounts> repeats = {};
  std::optional<TimedBytes> alone = {};  // the first of several GPUs, while the others are idle
  std::vector<MemberCounts> members = {};
  // Nanoseconds of each transfer.
  std::optional<Distribution> latency_ns = {}, prep_ns = {}, post_ns = {}, tx_ns = {};
  std::vector<DeviceCounts> devices = {};
  std::vector<CountedPayload> payload = {};
  friend bool operator==(const RowCounts&, const RowCounts&) = default;
};

}  // namespace viaduct::measure
