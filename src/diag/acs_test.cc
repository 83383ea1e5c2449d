#include "diag/acs.h"

#include <gtest/gtest.h>

#include "diag/config_space_testing.h"

namespace viaduct::diag {
namespace {

using State = AcsControl::State;
using testing::configSpace;

TEST(Acs, IsFoundBehindOtherCapabilities) {
  const AcsControl seen = acsOf(configSpace({{0x0001, 0x140, 0}, {0x000d, 0, 0x001d}}));
  EXPECT_EQ(seen.state, State::kSeen);
  EXPECT_TRUE(seen.redirects());
  EXPECT_EQ(seen.text(),
            "SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-");
}

TEST(Acs, IsHarmlessWithoutRedirectBits) {
  EXPECT_FALSE(acsOf(configSpace({{0x000d, 0, 0x0001}})).redirects());
  EXPECT_EQ(acsOf(configSpace({{0x0001, 0, 0}})).state, State::kNone);
  EXPECT_EQ(acsOf(std::string(4096, '\0')).state, State::kNone);
}

TEST(Acs, IsHiddenWhereTheListCannotBeFollowed) {
  const std::string whole = configSpace({{0x0001, 0x140, 0}, {0x000d, 0, 0x001d}});
  for (const std::size_t bytes : {0, 64, 256, 300, 0x144})
    EXPECT_EQ(acsOf(whole.substr(0, bytes)).state, State::kHidden) << bytes;
  EXPECT_EQ(acsOf(std::string(4096, '\xff')).state, State::kHidden) << "no answer";
  EXPECT_EQ(acsOf(configSpace({{0x0001, 0x140, 0}, {0x0002, 0x100, 0}})).state, State::kHidden)
      << "a loop";
  EXPECT_EQ(acsOf(configSpace({{0x0001, 0xffc, 0}})).state, State::kHidden) << "out of the space";
}

}  // namespace
}  // namespace viaduct::diag
