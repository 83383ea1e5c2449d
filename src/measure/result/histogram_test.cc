#include "measure/result/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.h"

namespace viaduct::measure {
namespace {

TEST(Histogram, EmptyIsZero) {
  const Histogram none;
  EXPECT_EQ(none.quantile(0.5), 0);
  EXPECT_EQ(none.max(), 0U);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram seen;
  for (std::uint64_t v = 1; v <= 100; ++v) seen.record(v);
  EXPECT_EQ(seen.quantile(0.5), 50);
  EXPECT_EQ(seen.quantile(0.99), 99);
  EXPECT_EQ(seen.quantile(1), 100);
  EXPECT_EQ(seen.quantile(0), 1);
}

TEST(Histogram, QuantilesAreWithinOnePercentOverAllMagnitudes) {
  base::Random random(1);
  Histogram seen;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(random.next() >> random.below(64));
    seen.record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(q * static_cast<double>(values.size()) + 0.5);
    const auto exact = static_cast<double>(values[std::max<std::size_t>(rank, 1) - 1]);
    EXPECT_NEAR(seen.quantile(q), exact, exact * 0.01) << q;
  }
  EXPECT_EQ(seen.max(), values.back());
  EXPECT_EQ(seen.count(), values.size());
}

TEST(Histogram, TakesTheLargestValues) {
  Histogram seen;
  seen.record(~std::uint64_t{0});
  seen.record(0);
  EXPECT_EQ(seen.max(), ~std::uint64_t{0});
  EXPECT_EQ(seen.quantile(0.5), 0);
}

TEST(Histogram, AddsDecodedHistograms) {
  base::Random random(2);
  Histogram all, here, there;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = random.next() >> random.below(64);
    all.record(value);
    (i % 3 == 0 ? here : there).record(value);
  }
  base::Writer writer;
  there.encode(writer);
  const auto bytes = writer.take();
  base::Reader reader(bytes);
  Histogram arrived;
  arrived.decode(reader);
  EXPECT_TRUE(reader.finished());
  here.add(arrived);
  EXPECT_EQ(here.count(), all.count());
  EXPECT_EQ(here.max(), all.max());
  EXPECT_NEAR(here.mean() / all.mean(), 1, 1e-9);
  for (const double q : {0.0, 0.01, 0.5, 0.99, 1.0}) EXPECT_EQ(here.quantile(q), all.quantile(q));
  base::Reader cut(std::span<const std::byte>(bytes).first(bytes.size() - 1));
  arrived.decode(cut);
  EXPECT_FALSE(cut.ok());
}

TEST(Histogram, IsReadBackFromItsText) {
  Histogram some;
  for (const std::uint64_t value : {3, 3, 4, 7, 1'000'000}) some.record(value);
  const Distribution text = some.distribution();
  EXPECT_TRUE(text.buckets.starts_with("3x2 1 2x1 ")) << text.buckets;
  const auto read = Histogram::of(text);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->fits());
  EXPECT_EQ(read->distribution(), text);
  EXPECT_EQ(read->count(), 5U);
  EXPECT_EQ(read->mean(), some.mean());
  EXPECT_EQ(read->quantile(0.5), some.quantile(0.5));
  EXPECT_EQ(Histogram::of(Histogram().distribution())->count(), 0U);
  for (const char* wrong : {"3x", "x3", "a", "3x0", "-1", "9999x1", "7423x1 1 1"})
    EXPECT_FALSE(Histogram::of({.buckets = wrong})) << wrong;
}

TEST(Histogram, EndsAndSumFitTheBuckets) {
  Histogram some;
  for (const std::uint64_t value : {1000, 2000, 3000}) some.record(value);
  const Distribution right = some.distribution();
  const auto fits = [](const Distribution& text) { return Histogram::of(text)->fits(); };
  EXPECT_TRUE(fits(right));
  Distribution wrong = right;
  wrong.min = 900;
  EXPECT_FALSE(fits(wrong));
  wrong = right;
  wrong.max = 3100;
  EXPECT_FALSE(fits(wrong));
  wrong = right;
  wrong.sum = 6100;
  EXPECT_FALSE(fits(wrong));
  wrong = right;
  std::swap(wrong.min, wrong.max);
  EXPECT_FALSE(fits(wrong));
  EXPECT_EQ(Histogram::of(wrong)->quantile(0.5), 1000);
}

}  // namespace
}  // namespace viaduct::measure
