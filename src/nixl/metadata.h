// Encodes an agent's metadata as bytes: its addresses and its registrations.
// Threads: plain values.
#pragma once

#include <viaduct/card.h>
#include <viaduct/result.h>

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.h"
#include "nixl/lists.h"

namespace viaduct::nixl {

struct MemoryRange {
  Memory memory = Memory::kDram;
  std::uint64_t device = 0;   // for a file without a path: its descriptor
  std::uint64_t address = 0;  // the offset in a file or object
  std::uint64_t bytes = 0;

  auto operator<=>(const MemoryRange&) const = default;
};
struct Region : MemoryRange {
  // Numbers the registrations of one agent. labelOf() turns the serial into the pin's label.
  std::uint32_t serial = 0;
};

// Returns the registration of a pin, or nothing if labelOf() did not make the pin's label.
std::optional<Region> regionOf(const PinInfo& pin);
// NIXL's name for a kind of memory with addresses.
constexpr Memory memoryOf(MemoryKind kind) {
  return kind == MemoryKind::kDevice ? Memory::kVram : Memory::kDram;
}

using AgentId = std::array<std::uint8_t, 16>;
// Make the label of a registration's pin. A restarted agent has a new AgentId, so that its labels
// differ from the earlier ones.
std::string labelPrefix(const AgentId& agent);
std::string labelOf(const AgentId& agent, std::uint32_t serial);
// Returns the serial in a label that labelOf() made.
std::optional<std::uint32_t> serialOf(std::string_view label);
// Returns as much of the AgentId as labelPrefix() tells, or zeros for another label.
AgentId agentOf(const PinInfo& pin);

// The memory that a region names.
Segment segmentOf(const Region& region);
// Maps the regions of DRAM and VRAM. The slot of each mapped range is the region's serial.
core::PinMap mapOf(const std::vector<Region>& regions);

struct Metadata {
  std::string name = {};
  AgentId agent = {};             // new after each restart of the agent
  std::optional<Card> card = {};  // empty: the receiver knows the agent's addresses already
  bool partial = false;           // the receiver adds these regions to the regions it knows
  std::vector<Region> regions = {};

  std::string encode() const;
  // Returns the agent's name without checking the bytes. Empty if the bytes hold no name.
  static std::string_view nameOf(std::string_view blob);
  // Refuses bytes that are truncated, corrupted, of another version, or from the real NIXL. The
  // error names the reason.
  static Result<Metadata> decode(std::string_view blob);
};

}  // namespace viaduct::nixl
