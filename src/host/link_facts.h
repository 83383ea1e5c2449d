// Facts of network interfaces from netlink: the queueing disciplines that limit them, dropped
// packets, and a second count of their bytes. The interfaces are those of this process's network
// namespace. Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/counters.h"

namespace viaduct::host {

struct LinkFacts {
  std::string name = {};
  std::uint32_t mtu = 0;
  // Packets that the interface or its queueing disciplines have dropped, in both directions.
  std::uint64_t dropped = 0;
  // The queueing discipline with the lowest rate: "tbf". Empty: none has a rate.
  std::string shaper = {};
  std::uint64_t shaped_bytes_per_s = 0;
  friend bool operator==(const LinkFacts&, const LinkFacts&) = default;
};
// The facts of all interfaces. Empty if the kernel refuses.
std::vector<LinkFacts> linkFacts();
// The bytes that all interfaces have carried. Empty if the kernel refuses.
std::vector<Counter> linkCounters();

// The kernel's answers to a request for all interfaces, all queueing disciplines, and all classes.
struct LinkAnswers {
  std::span<const std::byte> links = {}, disciplines = {}, classes = {};
};
std::vector<LinkFacts> linkFactsFrom(const LinkAnswers& answers);
std::vector<Counter> linkCountersFrom(std::span<const std::byte> links);

}  // namespace viaduct::host
