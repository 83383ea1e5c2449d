// Helpers for tests of the local backend between processes: both kinds of memory, and peers that
// own some.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "backends/local/process_pair_testing.h"
#include "base/random.h"
#include "base/shared_memory.h"

namespace viaduct::local::testing {

using base::SharedMemory;
using core::Op;

inline constexpr std::uint64_t kBytes = std::uint64_t{4} << 20U;
inline constexpr std::uint32_t kHere = 1, kThere = 2;
inline constexpr std::byte kMark{0xa5};

inline Settings settings(std::uint32_t threads = 2) {
  Settings settings;
  settings.copy_threads = threads;
  settings.grace = std::chrono::milliseconds(100);
  return settings;
}

// Shared or plain memory, because the two are reached in different ways.
struct Memory {
  explicit Memory(bool shared) {
    if (shared)
      memfd = *SharedMemory::allocate(kBytes);
    else
      plain.resize(kBytes);
  }
  std::span<std::byte> bytes() { return memfd ? memfd.bytes() : std::span(plain); }
  Segment segment() { return memfd ? memfd.segment() : Segment::host(plain.data(), kBytes); }
  void fill(std::uint64_t seed) {
    base::Random random(seed);
    for (std::size_t i = 0; i < kBytes; i += 8) {
      const std::uint64_t word = random.next();
      std::memcpy(bytes().data() + i, &word, 8);
    }
  }
  void mark() { std::ranges::fill(bytes(), kMark); }
  bool marked() { return std::ranges::count(bytes(), kMark) == static_cast<long>(kBytes); }

  SharedMemory memfd;
  std::vector<std::byte> plain;
};

inline std::uint64_t sum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 14695981039346656037U;
  for (const std::byte byte : bytes)
    sum = (sum ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211U;
  return sum;
}

inline std::vector<Op> whole(std::span<std::byte> here, std::uint64_t there,
                             std::uint64_t each = 4096) {
  std::vector<Op> ops;
  for (std::uint64_t at = 0; at < kBytes; at += each)
    ops.push_back(
        {reinterpret_cast<std::uintptr_t>(here.data()) + at, there + at, each, kHere, kThere});
  return ops;
}

// Owns memory of one kind, and answers "sum" and "fill" until it is told to end.
inline bool own(int socket, int pid, bool shared) {
  Station station(socket, pid, settings());
  Memory memory(shared);
  station.pin(kThere, memory.segment());
  while (station.run([&] { return !station.said.empty(); })) {
    const std::string what = station.said.front();
    station.said.pop_front();
    if (what == "end") return true;
    if (what == "sum") station.say(std::to_string(sum(memory.bytes())));
    if (what == "fill") memory.fill(77), station.say("filled");
    if (what == "unpin") station.say(station.unpin(kThere) ? "unpinned" : "stuck");
    if (what == "unmap") ::munmap(memory.bytes().data(), kBytes), station.say("unmapped");
  }
  return false;
}

class EveryWay : public ::testing::TestWithParam<bool> {
 protected:
  bool shared() const { return GetParam(); }
  std::string_view way() const { return shared() ? "mapped" : "cma"; }
};
}  // namespace viaduct::local::testing
