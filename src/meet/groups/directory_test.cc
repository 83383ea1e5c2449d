// Tests the limits of members' names and searches at the server.
#include "meet/groups/directory.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace viaduct::meet::groups {
namespace {

struct Answers final : MemberConnections {
  void send(GuestId to, const PacketPtr& packet) override {
    last[to] = *base::decode<AnswerMessage>(packet->payload);
  }
  std::uint64_t ping(GuestId) override { return ++pings; }
  void say(const std::string&) override {}

  std::map<GuestId, AnswerMessage> last;
  std::uint64_t pings = 0;
};

class DirectoryTest : public ::testing::Test {
 protected:
  static constexpr GuestId kOne = 1, kOther = 2;

  // Returns the refusal, if there is one.
  std::optional<Error> publish(GuestId guest, const std::string& name,
                               std::size_t bytes = kMaxValueBytes) {
    names_.publish(guest, {.request = ++request_,
                           .name_space = "n",
                           .name = name,
                           .value = std::string(bytes, 'v'),
                           .owner = "o"});
    return answers_.last[guest].error;
  }
  // Returns how many names of the greatest size fit.
  int fill(GuestId guest) {
    int names = 0;
    while (names < 10'000 && !publish(guest, std::to_string(guest) + "." + std::to_string(names)))
      ++names;
    return names;
  }

  Answers answers_;
  base::Budget memory_{std::uint64_t{100} << 20U};
  Directory names_{answers_, memory_};
  std::uint32_t request_ = 0;
};

TEST_F(DirectoryTest, EachMemberHasALimit) {
  EXPECT_EQ(fill(kOne), 63);
  const auto refused = publish(kOne, "more");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, Code::kExhausted);
  for (const char* said : {"16777216 for one member", "104857600 for all members", "are left"})
    EXPECT_NE(refused->detail.find(said), std::string::npos) << refused->detail;
  EXPECT_FALSE(publish(kOther, "others may"));
  names_.withdraw(kOne, 1);
  EXPECT_FALSE(publish(kOne, "more"));
}

TEST_F(DirectoryTest, AllMembersTogetherHaveALimit) {
  GuestId guest = 0;
  while (fill(++guest) > 0) ASSERT_LT(guest, 20U);
  EXPECT_LE(memory_.used(), std::uint64_t{100} << 20U);
  for (GuestId gone = 1; gone <= guest; ++gone) names_.gone(gone);
  EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(DirectoryTest, ANameThatIsPublishedAgainCountsOnce) {
  for (int i = 0; i < 20'000; ++i) ASSERT_FALSE(publish(kOne, "same", 1000)) << i;
  EXPECT_LT(memory_.used(), 2000U);
}

TEST_F(DirectoryTest, SearchesAndClaimsCountUntilTheyAreOver) {
  EXPECT_FALSE(publish(kOne, "taken", 10));
  const auto before = memory_.used();
  publish(kOther, "taken", 10);  // waits for the owner's answer to a ping
  names_.find(kOther, {.request = 777, .name_space = "n", .name = "unknown"});
  EXPECT_GT(memory_.used(), before);
  names_.pong(kOne, answers_.pings);
  EXPECT_EQ(answers_.last[kOther].error->code, Code::kBusy);
  names_.forget(kOther, 777);
  EXPECT_EQ(memory_.used(), before);
}

}  // namespace
}  // namespace viaduct::meet::groups
