#include "measure/workload/spec.h"

#include <gtest/gtest.h>

#include <set>

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

Workload row(std::uint64_t block, std::uint32_t batch) {
  return {.backend = "tcp", .block_bytes = block, .batch = batch};
}

TEST(Memory, IsAsLargeAsTheRowsNeed) {
  const Spec spec{.layout = {.scheme = Scheme::kManyToOne, .initiators = 3},
                  .rows = {row(4096, 64), row(kMiB, 2)},
                  .depth = 2};
  const auto bytes = deviceBytes(spec);
  ASSERT_TRUE(bytes) << bytes.error().text();
  EXPECT_EQ(bytes->initiator, 4 * kMiB);
  EXPECT_EQ(bytes->target, 12 * kMiB);
  EXPECT_EQ(processBytes(spec, *bytes, 0), 4 * kMiB);
  EXPECT_EQ(processBytes(spec, *bytes, 3), 12 * kMiB);
}

TEST(Memory, OfAProcessIsSplitOverItsDevices) {
  const Spec spec{.layout = {.mode = Mode::kMg, .initiators = 4, .targets = 2},
                  .rows = {row(kMiB, 1)},
                  .buffer_bytes = 64 * kMiB};
  const auto bytes = deviceBytes(spec);
  ASSERT_TRUE(bytes) << bytes.error().text();
  EXPECT_EQ(bytes->initiator, 16 * kMiB);
  EXPECT_EQ(bytes->target, 32 * kMiB);
  EXPECT_EQ(processBytes(spec, *bytes, 1), 64 * kMiB);
}

TEST(Memory, ATransferThatDoesNotFitIsNamedWithTheSizes) {
  const Spec spec{.layout = {.scheme = Scheme::kManyToOne, .initiators = 4},
                  .rows = {row(4096, 1), row(kMiB, 4)},
                  .buffer_bytes = 8 * kMiB};
  const auto bytes = deviceBytes(spec);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().detail,
            "4 blocks of 1 MiB do not fit: a device of the targets has 8 MiB, 2 MiB for each "
            "stream that uses it");
}

// No two streams share a byte on either side, and no stream's set ends beyond the memory.
TEST(Memory, SetsOfStreamsNeverOverlap) {
  for (const Scheme scheme : {Scheme::kPairwise, Scheme::kOneToMany, Scheme::kTp})
    for (const std::uint64_t set : {std::uint64_t{0}, kMiB}) {
      const Spec spec{.layout = {.scheme = scheme, .initiators = 2, .targets = 3},
                      .rows = {row(1000, 7), row(65536, 1)},
                      .threads = 2,
                      .bidirectional = true,
                      .working_set = set};
      const DeviceBytes bytes = *deviceBytes(spec);
      for (const Workload& w : spec.rows) {
        std::set<std::pair<std::uint32_t, std::uint64_t>> here, there;
        for (const Stream& stream : streamsOf(spec.layout, spec.threads, spec.bidirectional)) {
          const Sets sets = setsOf(spec, w, stream, bytes);
          EXPECT_EQ(sets.count, set == 0 ? 1 : kMiB / w.bytes());
          for (std::uint64_t s = 0; s < sets.count; ++s) {
            EXPECT_GE(sets.stride, w.bytes());
            EXPECT_TRUE(
                here.insert({stream.pair.initiator, sets.initiator_at + s * sets.stride}).second);
            EXPECT_TRUE(
                there.insert({stream.pair.target, sets.target_at + s * sets.stride}).second);
            EXPECT_LE(sets.initiator_at + s * sets.stride + w.bytes(), bytes.initiator);
            EXPECT_LE(sets.target_at + s * sets.stride + w.bytes(), bytes.target);
          }
        }
        const auto apart = [&](const auto& starts) {
          for (auto at = starts.begin(), next = std::next(at); next != starts.end(); ++at, ++next) {
            if (at->first != next->first) continue;
            EXPECT_LE(at->second + w.bytes(), next->second);
          }
        };
        apart(here);
        apart(there);
      }
    }
}

// Storage is not as large as the default buffer of nixlbench, which would fill a disk.
TEST(Storage, IsAsLargeAsTheRowsNeed) {
  Spec spec{.layout = {.initiators = 2, .targets = 0},
            .rows = {row(4096, 64), row(kMiB, 2)},
            .threads = 2,
            .depth = 2,
            .buffer_bytes = 8192 * kMiB};
  const DeviceBytes bytes = *deviceBytes(spec);
  EXPECT_EQ(bytes.initiator, 8192 * kMiB);
  EXPECT_EQ(bytes.target, 8 * kMiB);
  EXPECT_EQ(processBytes(spec, bytes, 1), 8200 * kMiB) << "with a copy of the storage";
  EXPECT_EQ(fileBytes(spec, bytes), 8 * kMiB);
  spec.storage.files = 3;
  EXPECT_EQ(fileBytes(spec, bytes), 4 * kMiB) << "2 of 4 blocks of each stream are in one file";
}

TEST(Memory, AHugeWorkingSetIsWalkedEvenly) {
  const Spec spec{.rows = {row(4096, 1)}, .buffer_bytes = 1024 * kMiB, .working_set = 1024 * kMiB};
  const Sets sets =
      setsOf(spec, spec.rows[0], streamsOf(spec.layout, 1, false)[0], *deviceBytes(spec));
  EXPECT_EQ(sets.count * sets.stride, 1024 * kMiB);
}

TEST(ScaledSide, IsTheOneWithMoreGpus) {
  const auto of = [](std::uint32_t initiators, std::uint32_t targets) {
    return scaledSide({.layout = {.initiators = initiators, .targets = targets},
                       .initiator_gpu = 0,
                       .target_gpu = 0});
  };
  EXPECT_FALSE(of(1, 1));
  EXPECT_EQ(of(2, 2)->role, Role::kInitiator);
  EXPECT_EQ(of(1, 3)->role, Role::kTarget);
  EXPECT_EQ(of(1, 3)->devices, 3U);
  Spec host{.layout = {.initiators = 4, .targets = 2}, .target_gpu = 0};
  EXPECT_EQ(scaledSide(host)->role, Role::kTarget) << "the initiators have host memory";
  host.ping_pong = true;
  EXPECT_FALSE(scaledSide(host));
}

}  // namespace
}  // namespace viaduct::measure
