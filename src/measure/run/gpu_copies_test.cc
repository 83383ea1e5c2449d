#include "measure/run/gpu_copies.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

using Copies = std::vector<GpuCopy>;

// `device`: the number of the member's first device.
GpuMember member(const std::string& host, const std::vector<std::string>& ids,
                 std::uint32_t device = 0) {
  GpuMember out{.boot_id = host};
  for (const std::string& id : ids) out.gpus.push_back({device++, id, "GPU " + id});
  return out;
}

TEST(GpuTurns, ThoseOfOneGpuAreMeasuredOnce) {
  const std::vector<GpuMember> same{member("a", {"x"}), member("a", {"x"})};
  const auto turns = gpuTurns({}, same);
  EXPECT_EQ(turns[0].copies, (Copies{{"x", ""}, {"", "x"}, {"x", "x"}}));
  EXPECT_TRUE(turns[1].copies.empty());
}

TEST(GpuTurns, HostMemoryNeedsNone) {
  const std::vector<GpuMember> none{member("a", {}), member("a", {})};
  for (const GpuTurn& turn : gpuTurns({}, none)) EXPECT_TRUE(turn.copies.empty());
  const std::vector<GpuMember> stored{member("a", {"x"})};
  EXPECT_EQ(gpuTurns({.targets = 0}, stored)[0].copies, (Copies{{"x", ""}, {"", "x"}}));
}

TEST(GpuTurns, MembersOfAHostTakeTurns) {
  const std::vector<GpuMember> hosts{member("a", {"x"}), member("a", {"y"}, 1), member("b", {"x"}),
                                     member("b", {"z"}, 1)};
  const auto turns = gpuTurns({.initiators = 2, .targets = 2}, hosts);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(turns[rank].turn, rank % 2);
    EXPECT_EQ(turns[rank].copies.size(), 2U) << "a GPU of another host is not reached";
  }
}

TEST(GpuTurns, TwoGpusAreMeasuredByAMemberThatHasBoth) {
  const Layout layout{
      .scheme = Scheme::kOneToMany, .mode = Mode::kMg, .initiators = 1, .targets = 2};
  const std::vector<GpuMember> members{member("a", {"x"}), member("a", {"x", "y"})};
  const auto turns = gpuTurns(layout, members);
  EXPECT_EQ(turns[0].copies, (Copies{{"x", ""}, {"", "x"}, {"x", "x"}}));
  EXPECT_EQ(turns[1].copies, (Copies{{"y", ""}, {"", "y"}, {"x", "y"}, {"y", "x"}}));
  EXPECT_EQ(turns[1].turn, 1U);
  const std::vector<GpuMember> apart{member("a", {"x"}), member("a", {"y"})};
  for (const GpuTurn& turn : gpuTurns({}, apart)) EXPECT_EQ(turn.copies.size(), 2U);
}

}  // namespace
}  // namespace viaduct::measure
