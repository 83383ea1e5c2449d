// Copies of many small blocks between host memory and memory of a GPU, as engines swap their
// caches. Threads: plain values.
#pragma once

#include <cstdint>

#include "base/words.h"
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
    {{"viaduct", Way::kViaduct}, {kOneCallABlock, Way::kOneCall}}};
constexpr const char* wayName(Way one) { return base::wordOf(kWays, one); }

struct Copies {
  Direction direction = Direction::kIn;
  Order order = Order::kContiguous;
  Way way = Way::kViaduct;
  friend bool operator==(const Copies&, const Copies&) = default;
};

}  // namespace viaduct::measure::swap
