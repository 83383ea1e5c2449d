// An agent's metadata as bytes: the way to reach it, and its registrations.
// Threads: plain values.
#pragma once

#include <viaduct/card.h>
#include <viaduct/result.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.h"
#include "nixl_lists.h"

namespace viaduct::python::nixl {

struct Region {
  Memory memory = Memory::kDram;
  std::uint64_t device = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  // Numbers the registrations of one agent; its pin has labelOf() it.
  std::uint32_t serial = 0;
};

// The registration of that pin; nothing where the label is not of labelOf().
std::optional<Region> regionOf(const PinInfo& pin);
Memory memoryOf(MemoryKind kind);

using AgentId = std::array<std::uint8_t, 16>;
// The label of a registration's pin. No two lives of an agent use the same.
std::string labelPrefix(const AgentId& agent);
std::string labelOf(const AgentId& agent, std::uint32_t serial);

// The host memory among them, whose slots are the serials.
core::PinMap hostMemory(const std::vector<Region>& regions);

struct Metadata {
  std::string name = {};
  AgentId agent = {};             // this life of it
  std::optional<Card> card = {};  // none: how to reach it is known already
  bool partial = false;           // adds regions to those that are known
  std::vector<Region> regions = {};

  std::string encode() const;
  // The name in it, unchecked; empty where there is none.
  static std::string_view nameOf(std::string_view blob);
  // Refuses what is truncated, corrupted, of another version or of the real NIXL, and says which.
  static Result<Metadata> decode(std::string_view blob);
};

}  // namespace viaduct::python::nixl
