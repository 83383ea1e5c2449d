// Counts values in log-linear buckets. Quantiles are within 0.4 %, and recording does not allocate.
// Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "measure/result/counts.h"

namespace viaduct::measure {

class Histogram {
 public:
  void record(std::uint64_t value);
  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }                    // exact
  std::uint64_t min() const { return count_ == 0 ? 0 : min_; }  // exact
  // Returns the value that a part `q` (0 to 1) of all values does not exceed, or 0 if empty.
  double quantile(double q) const;
  double mean() const;  // exact; 0 when empty

  // Adds all values that the other histogram has recorded.
  void add(const Histogram& other);
  // Write and read the histogram as a message between processes.
  void encode(base::Writer& to) const;
  void decode(base::Reader& from);
  // True if minimum, maximum and sum are possible for the values in the buckets.
  bool fits() const;
  // Convert from and to a Distribution, whose buckets are text. of() returns nothing if the text is
  // malformed.
  Distribution distribution() const;
  static std::optional<Histogram> of(const Distribution& distribution);

 private:
  // Values below 256 have buckets of their own. Each higher power of two has 128 buckets.
  static constexpr std::size_t kBuckets = std::size_t{58} * 128;
  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0, min_ = ~std::uint64_t{0}, max_ = 0;
  double sum_ = 0;
};

}  // namespace viaduct::measure
