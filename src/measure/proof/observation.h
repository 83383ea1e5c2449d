// What one member of a run saw of one row: its devices' counters before and after, and what its
// transfers say of themselves. Threads: plain values.
#pragma once

#include <viaduct/path.h>
#include <viaduct/transfer.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_id.h"
#include "host/counters.h"
#include "host/devices.h"

namespace viaduct::measure::proof {

// What the transfers of one initiator to one peer moved between before() and after().
struct Claim {
  std::uint32_t peer = 0;  // its rank
  OpKind op = OpKind::kWrite;
  Path path = {};  // bytes and ops of all these transfers together
  friend bool operator==(const Claim&, const Claim&) = default;
};

// How fast this host copies memory with all its threads, for buffers of that size.
struct CopyRate {
  std::uint64_t bytes = 0;
  double gb_per_s = 0;
  friend bool operator==(const CopyRate&, const CopyRate&) = default;
};

struct MemoryRates {
  std::uint32_t threads = 0;               // 0: not measured
  double one_thread_gb_per_s = 0;          // of large buffers
  std::vector<CopyRate> all_threads = {};  // by size, ascending
  friend bool operator==(const MemoryRates&, const MemoryRates&) = default;
};

// Where a member lives: whose counters are its own, and what it may use.
struct HostPlace {
  std::string hostname = {};
  std::string boot_id = {};
  std::string network = {};  // the network namespace
  base::ProcessId process = {};
  std::vector<host::Device> devices = {};
  std::vector<std::string> rails = {};  // that were asked for; empty: any
  MemoryRates memory = {};
  friend bool operator==(const HostPlace&, const HostPlace&) = default;
};

struct Reading {
  std::uint64_t at_ns = 0;
  std::vector<host::Counter> counters = {};
  friend bool operator==(const Reading&, const Reading&) = default;
};

struct Observation {
  HostPlace place = {};
  // From `quiet` to `before` nothing of ours moves: what is counted then is others' traffic.
  Reading quiet = {}, before = {}, after = {};
  std::vector<Claim> claims = {};
  friend bool operator==(const Observation&, const Observation&) = default;
};

std::string encode(const Observation& observation);
Result<Observation> decodeObservation(std::string_view text);

}  // namespace viaduct::measure::proof
