#include <gtest/gtest.h>

#include <array>

#include "core/sink_testing.h"
#include "support/link_pair.h"

namespace viaduct::fake {

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context);

namespace {

// The initiator learns last that its peer has pinned the same memory again, with the same slot.
TEST(FakeBackend, ACopyReachesNoLaterPinOfTheSameSlot) {
  const Settings settings;
  const auto poller = std::move(*base::Poller::open());
  const auto initiator = std::move(*open({settings, *poller}));
  const auto target = std::move(*open({settings, *poller}));
  core::LinkSeed seed;
  seed.same_process = seed.same_host = true;
  testing::LinkPair pair(*initiator, *target, *poller, seed);
  std::array<std::byte, 64> here{std::byte{1}}, there{};
  const Segment memory = Segment::host(there.data(), there.size());
  pair.pin(1, 0, memory);
  const std::array ops{core::Op{.local = Segment::host(here.data(), here.size()).address,
                                .remote = memory.address,
                                .bytes = memory.bytes}};
  core::Rail& rail = *initiator->rails().front();
  ASSERT_EQ(rail.post({.kind = OpKind::kWrite,
                       .slice = core::testing::sliceOf(1),
                       .link = pair.ends[0].link.get(),
                       .ops = ops}),
            1U);
  ASSERT_TRUE(testing::withdraw(*target, 0));
  ASSERT_TRUE(target->pin(0, memory));
  core::Completions out;
  rail.poll(out);
  ASSERT_EQ(out.size(), 1U);
  const auto* failed = std::get_if<core::Failed>(&out.front());
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->why.code, Code::kDenied);
  EXPECT_EQ(there.front(), std::byte{0});
}

}  // namespace
}  // namespace viaduct::fake
