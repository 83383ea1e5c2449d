// Copies of many small blocks between host memory and memory of a GPU, as engines swap their
// caches: what is measured, and the results. Threads: plain values.
#pragma once

#include <viaduct/settings.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "measure/load/buffer.h"
#include "measure/result/row.h"

namespace viaduct::measure::swap {

enum class Direction : std::uint8_t { kIn, kOut };  // into memory of the GPU, or out of it
inline constexpr base::Words<Direction, 2> kDirections{
    {{"in", Direction::kIn}, {"out", Direction::kOut}}};
constexpr const char* directionName(Direction one) { return base::wordOf(kDirections, one); }

enum class Order : std::uint8_t {
  kContiguous,  // runs of blocks that touch, in the same order on both sides
  kRandom,      // no two blocks touch, and both sides have their own random order
};
inline constexpr base::Words<Order, 2> kOrders{
    {{"contiguous", Order::kContiguous}, {"random", Order::kRandom}}};
constexpr const char* orderName(Order one) { return base::wordOf(kOrders, one); }

enum class Way : std::uint8_t { kViaduct, kOneCall };
inline constexpr base::Words<Way, 2> kWays{
    {{"viaduct", Way::kViaduct}, {"one call a block", Way::kOneCall}}};
constexpr const char* wayName(Way one) { return base::wordOf(kWays, one); }

struct SwapRequest {
  Settings settings = {};  // of the agent
  std::vector<std::uint64_t> block_sizes = {};
  std::uint32_t blocks = 1024;  // of a copy
  std::uint32_t gpu = 0;
  Buffer::Kind host = {};
  std::uint32_t rounds = 6;                                            // of each way, in turns
  std::chrono::nanoseconds duration = std::chrono::milliseconds(400);  // of all rounds of two ways
  std::chrono::nanoseconds warmup = std::chrono::milliseconds(50);
  std::uint64_t seed = 1;
};

// The copies of one way.
struct WayResult {
  std::string path = {};                // "cuda/direct", or the call of the driver
  std::vector<double> gb_per_s = {};    // of each round
  std::vector<double> plan_us = {};     // of each copy, on average of a round
  std::string copied_by = {};           // as Row::copied_by
  std::optional<Ceiling> ceiling = {};  // none: unknown, or the way was faster
};

// One size, direction and order.
struct Case {
  Direction direction = Direction::kIn;
  Order order = Order::kContiguous;
  std::uint64_t block_bytes = 0;
};

struct CaseResult {
  Case of = {};
  std::array<WayResult, 2> ways = {};  // by Way
  std::uint64_t guard_bytes = 0;       // that were checked, of both memories
  std::string ceiling_unknown = {};    // the reason
  std::string wrong = {};              // the first wrong bytes; empty: none
  const WayResult& operator[](Way way) const { return ways[static_cast<std::size_t>(way)]; }
};

struct SwapResult {
  std::string gpu = {};  // "GPU 0 (NVIDIA H100)"
  std::vector<CaseResult> cases = {};
  // False if the driver has not registered the host memory, so that it copies through a buffer.
  bool pinned() const {
    for (const CaseResult& one : cases)
      if (one[Way::kViaduct].path.find("pageable") != std::string::npos) return false;
    return true;
  }
  bool good() const {
    for (const CaseResult& one : cases)
      if (!one.wrong.empty()) return false;
    return true;
  }
};

}  // namespace viaduct::measure::swap
