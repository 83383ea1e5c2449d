#include "measure/result/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/fields.h"
#include "base/text.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kSub = 128;

std::size_t shiftOf(std::uint64_t value) {
  return value < 2 * kSub ? 0 : static_cast<std::size_t>(std::bit_width(value)) - 8;
}

std::size_t bucketOf(std::uint64_t value) {
  const std::size_t shift = shiftOf(value);
  return shift * kSub + (value >> shift);
}

double lowest(std::size_t bucket) {  // returns the bucket's lowest value
  if (bucket < 2 * kSub) return static_cast<double>(bucket);
  return std::ldexp(static_cast<double>(bucket % kSub + kSub), static_cast<int>(bucket / kSub - 1));
}

double middleOf(std::size_t bucket) {
  if (bucket < 2 * kSub) return static_cast<double>(bucket);
  return (lowest(bucket) + lowest(bucket + 1)) / 2;
}

}  // namespace

void Histogram::record(std::uint64_t value) {
  ++buckets_[bucketOf(value)];
  ++count_;
  sum_ += static_cast<double>(value);
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

double Histogram::quantile(double q) const {
  if (count_ == 0) return 0;
  const auto wanted = std::max(std::ceil(q * static_cast<double>(count_)), 1.0);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    // A file may state a minimum above its maximum, which std::clamp forbids.
    if (static_cast<double>(seen) >= wanted)
      return std::min(std::max(middleOf(i), static_cast<double>(min_)), static_cast<double>(max_));
  }
  return static_cast<double>(max_);
}

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void Histogram::encode(base::Writer& to) const {
  const auto used = std::count_if(buckets_.begin(), buckets_.end(), [](auto n) { return n != 0; });
  base::Fields::put(to, min_, max_, sum_, static_cast<std::uint16_t>(used));
  for (std::size_t i = 0; i < kBuckets; ++i)
    if (buckets_[i] != 0) base::Fields::put(to, static_cast<std::uint16_t>(i), buckets_[i]);
}

void Histogram::decode(base::Reader& from) {
  *this = {};
  std::uint16_t used = 0;
  base::Fields::get(from, min_, max_, sum_, used);
  for (; used > 0 && from.ok(); --used) {
    const auto bucket = from.get<std::uint16_t>();
    const auto count = from.get<std::uint64_t>();
    if (bucket >= kBuckets) return from.refuse();
    buckets_[bucket] += count;
    count_ += count;
  }
}

bool Histogram::fits() const {
  if (count_ == 0) return true;
  double low = 0, high = 0;
  std::size_t first = kBuckets, last = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] == 0) continue;
    first = std::min(first, i);
    last = i;
    low += lowest(i) * static_cast<double>(buckets_[i]);
    high += (lowest(i + 1) - 1) * static_cast<double>(buckets_[i]);
  }
  constexpr double kRounding = 1e-9;  // of a sum of many values
  return bucketOf(min_) == first && bucketOf(max_) == last && sum_ >= low * (1 - kRounding) &&
         sum_ <= high * (1 + kRounding);
}

Distribution Histogram::distribution() const {
  Distribution out{.min = min(), .max = max_, .sum = sum_};
  for (std::size_t i = 0, next = 0; i < kBuckets; ++i) {
    if (buckets_[i] == 0) continue;
    const std::string gap = i == next ? "" : fmt::format("{}x", i - next);
    out.buckets += fmt::format("{}{}{}", out.buckets.empty() ? "" : " ", gap, buckets_[i]);
    next = i + 1;
  }
  return out;
}

std::optional<Histogram> Histogram::of(const Distribution& distribution) {
  Histogram out;
  std::size_t next = 0;
  for (std::string_view word : base::wordsOf(distribution.buckets)) {
    if (const auto x = word.find('x'); x != std::string_view::npos) {
      const auto gap = base::numberIn<std::size_t>(word.substr(0, x));
      if (!gap || *gap >= kBuckets) return std::nullopt;
      next += *gap;
      word.remove_prefix(x + 1);
    }
    const auto count = base::numberIn<std::uint64_t>(word);
    if (!count || *count == 0 || next >= kBuckets) return std::nullopt;
    out.buckets_[next++] = *count;
    out.count_ += *count;
  }
  if (out.count_ == 0) return out;
  out.min_ = distribution.min;
  out.max_ = distribution.max;
  out.sum_ = distribution.sum;
  return out;
}

}  // namespace viaduct::measure
