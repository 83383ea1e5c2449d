// Tests members whose server runs in an elected member.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "base/net/address.h"
#include "base/net/listener.h"
#include "meet/groups/group_client.h"
#include "meet/groups/server.h"

namespace viaduct::meet::groups {
namespace {

using namespace std::chrono_literals;

const StopFlag kGoOn{false};
constexpr auto kLong = 20s;

SitePtr siteOf(std::vector<std::string> addresses, const std::string& token = "token") {
  return *embedded::openSite({.where = "here",
                              .name_space = "/viaduct",
                              .addresses = std::move(addresses),
                              .token = base::secretFromText(token)});
}

// A member whose texts are encrypted with the key.
Elected sealing(const base::Key& key) { return {.cipher = std::make_unique<base::Cipher>(key)}; }

JoinRequest request(std::uint32_t rank) {
  return {.group = "g", .size = 2, .rank = rank, .name = "m", .about = "a card"};
}

class ElectedServers : public ::testing::Test {
 protected:
  // Returns the values that each of the two members got in one round.
  using Values = Result<std::vector<std::string>>;
  static std::pair<Values, Values> gather(GroupClient& first, GroupClient& second) {
    auto other = std::async(std::launch::async, [&] { return second.gather("two", kLong, kGoOn); });
    Values mine = first.gather("one", kLong, kGoOn);
    return {std::move(mine), other.get()};
  }

  std::unique_ptr<EmbeddedServer> server_ = *EmbeddedServer::start({.token = "token"});
};

TEST_F(ElectedServers, TextsAndValuesOfMembersAreEncrypted) {
  std::vector<std::unique_ptr<GroupClient>> members;
  std::vector<std::future<Status>> joining;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    members.push_back(
        std::make_unique<GroupClient>(siteOf(server_->addresses()), sealing(base::Key{7})));
    joining.push_back(std::async(std::launch::async, [member = members.back().get(), rank] {
      return member->join(request(rank), kLong, kGoOn);
    }));
  }
  for (auto& one : joining) ASSERT_TRUE(one.get());
  EXPECT_EQ(members[0]->roster().members[1].about, "a card");
  const auto [mine, other] = gather(*members[0], *members[1]);
  ASSERT_TRUE(mine && other);
  EXPECT_EQ(*mine, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(*mine, *other);
}

// The second member does not decrypt, so it sees the sent bytes.
TEST_F(ElectedServers, AMemberWithoutTheKeyReadsOnlyCiphertext) {
  GroupClient first(siteOf(server_->addresses()), sealing(base::Key{7})),
      second(siteOf(server_->addresses()), Elected{});
  JoinRequest plain = request(1);
  plain.about = "";
  auto joining = std::async(std::launch::async, [&] { return second.join(plain, kLong, kGoOn); });
  ASSERT_TRUE(first.join(request(0), kLong, kGoOn));
  ASSERT_TRUE(joining.get());
  EXPECT_EQ(second.roster().members[0].about.size(), 6 + base::kSealBytes);
  EXPECT_EQ(second.roster().members[0].about.find("card"), std::string::npos);
  const auto [mine, other] = gather(first, second);
  ASSERT_FALSE(mine) << "what was not encrypted is not believed";
  if (other) {
    EXPECT_EQ(other->at(0).size(), 3 + base::kSealBytes);
    EXPECT_EQ(other->at(0).find("one"), std::string::npos);
  }
}

// On the member's host, another program may have an address of the server's host.
TEST_F(ElectedServers, TheNextAddressIsTriedIfAnotherProgramClosesTheConnection) {
  const auto any = base::resolve(*base::parseHostPort("127.0.0.1:0"));
  const base::Fd listening = *base::listenAt(any->front());
  std::thread hanging_up([&] {
    pollfd caller{.fd = listening.get(), .events = POLLIN, .revents = 0};
    ::poll(&caller, 1, -1);
    const base::Fd one(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  });
  std::vector<std::string> addresses{base::localAddress(listening.get())->text()};
  addresses.push_back(server_->addresses().front());
  GroupClient member(siteOf(addresses), Elected{});
  JoinRequest alone = request(0);
  alone.size = 1;
  const Status joined = member.join(alone, kLong, kGoOn);
  EXPECT_TRUE(joined) << joined.error().text();
  ::shutdown(listening.get(), SHUT_RDWR);
  hanging_up.join();
}

TEST_F(ElectedServers, AnUnreachableServerIsReportedToTheCaller) {
  const std::string gone = server_->addresses().front();
  server_.reset();
  GroupClient member(siteOf({gone}), Elected{});
  EXPECT_FALSE(member.join(request(0), kLong, kGoOn));
  EXPECT_TRUE(member.displaced());
}

TEST_F(ElectedServers, ARefusalIsNoReasonForAnElection) {
  GroupClient stranger(siteOf(server_->addresses(), "another"), Elected{});
  EXPECT_FALSE(stranger.join(request(0), kLong, kGoOn));
  EXPECT_FALSE(stranger.displaced());
}

TEST_F(ElectedServers, AServerRefusesMembersAfterItsGroupHasEnded) {
  std::promise<void> over;
  server_ = *EmbeddedServer::start({.token = "token", .over = [&] { over.set_value(); }});
  GroupClient member(siteOf(server_->addresses()), Elected{}),
      late(siteOf(server_->addresses()), Elected{});
  JoinRequest alone = request(0);
  alone.size = 1;
  ASSERT_TRUE(member.join(alone, kLong, kGoOn));
  ASSERT_TRUE(member.finish(kLong));
  EXPECT_EQ(over.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_FALSE(late.join(alone, kLong, kGoOn));
  EXPECT_TRUE(late.displaced());
}

}  // namespace
}  // namespace viaduct::meet::groups
