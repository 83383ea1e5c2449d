// Transfers that require an encrypted path, and what their paths say.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "support/bytes.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

// Two agents of one process over one backend.
class RequireEncrypted : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 300'000;

  void open(const std::string& backend, Privacy privacy, std::optional<Privacy> other = {},
            bool fabric_is_private = false) {
    const Settings settings{
        .backends = {backend}, .privacy = privacy, .fabric_is_private = fabric_is_private};
    Settings mine = settings, theirs = settings;
    mine.name = "a";
    theirs.name = "b";
    theirs.privacy = other.value_or(privacy);
    a_.emplace(*Agent::open(mine));
    b_.emplace(*Agent::open(theirs));
    here_.emplace(*a_->allocate(kBytes));
    there_.emplace(*b_->allocate(kBytes, {.label = "there"}));
    peer_.emplace(*a_->importCard(b_->exportCard()));
    ASSERT_TRUE(peer_->ready(20s));
    remote_ = peer_->waitPin("there", 20s)->address;
    testing::fillRandom({reinterpret_cast<std::byte*>(here_->info().address), kBytes}, 1);
  }
  void close() {
    peer_.reset();
    here_.reset();
    there_.reset();
    a_.reset();
    b_.reset();
  }
  Result<Transfer> plan() {
    const auto all = [](std::uint64_t address) {
      return Selection{*Blocks::strided({.base = address, .bytes = kBytes, .count = 1})};
    };
    return a_->plan(OpKind::kWrite, *peer_, all(here_->info().address), all(remote_),
                    {.require = "encrypted"});
  }
  // The path of a transfer, whose bytes have to arrive.
  std::string move() {
    auto transfer = plan();
    if (!transfer) return transfer.error().text();
    EXPECT_TRUE(transfer->post());
    EXPECT_TRUE(transfer->wait(20s));
    EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(here_->info().address),
                          reinterpret_cast<const void*>(there_->info().address), kBytes),
              0);
    return transfer->path().text();
  }

  std::optional<Agent> a_, b_;
  std::optional<Pin> here_, there_;
  std::optional<Peer> peer_;
  std::uint64_t remote_ = 0;
};

TEST_F(RequireEncrypted, EncryptedTcpSatisfiesIt) {
  open("tcp", Privacy::kEncrypted);
  const std::string path = move();
  EXPECT_TRUE(path.starts_with("tcp/socket+encrypted")) << path;
}

TEST_F(RequireEncrypted, TcpWithLessDoesNot) {
  for (const Privacy privacy : {Privacy::kAuto, Privacy::kFrames, Privacy::kIntegrity}) {
    close();
    open("tcp", privacy);
    const auto transfer = plan();
    ASSERT_FALSE(transfer);
    EXPECT_EQ(transfer.error().code, Code::kUnsupported);
    EXPECT_NE(transfer.error().text().find("the requirement"), std::string::npos);
  }
}

// The agent cannot know whether a fabric encrypts, so it believes the user's setting.
TEST_F(RequireEncrypted, AFabricDoesIfTheUserSaysSo) {
  for (const std::string fabric : {"ofi", "ucx"}) {
    if (!Agent::open({.name = "probe", .backends = {fabric}})) continue;
    for (const bool is_private : {false, true}) {
      close();
      open(fabric, Privacy::kRequired, {}, is_private);
      const std::string path = move();
      EXPECT_EQ(path.starts_with(fabric + "/"), is_private) << path;
    }
  }
}

TEST_F(RequireEncrypted, ARequirementThatThePeerHasTurnedOffIsNamedWithWhatToDo) {
  for (const auto& [here, there, detail] :
       {std::tuple(Privacy::kRequired, Privacy::kOff, "this agent requires encryption"),
        std::tuple(Privacy::kOff, Privacy::kRequired, "the peer requires encryption")}) {
    close();
    open("tcp", here, there);
    const auto transfer = plan();
    ASSERT_FALSE(transfer);
    const std::string text = transfer.error().text();
    EXPECT_NE(text.find(detail), std::string::npos) << text;
    EXPECT_NE(text.find("VIADUCT_PRIVACY=encrypted at both ends"), std::string::npos) << text;
  }
}

// Within one host, data without protection crosses no network, so no link is counted as "off".
TEST_F(RequireEncrypted, StatisticsCountTheLinksOfEachLevel) {
  for (const Privacy privacy : {Privacy::kAuto, Privacy::kIntegrity, Privacy::kRequired}) {
    close();
    open("tcp", privacy);
    for (const auto& agent : {&a_, &b_}) {
      const auto links = (**agent).statistics().links;
      ASSERT_EQ(links.size(), 1U);
      const auto& counts = links[0];
      EXPECT_EQ(counts.backend, "tcp");
      EXPECT_EQ(counts.usable, 1U);
      std::array<std::uint64_t, kPrivacies> expected{};
      if (privacy == Privacy::kIntegrity) expected[static_cast<std::size_t>(privacy)] = 1;
      if (privacy == Privacy::kRequired)
        expected[static_cast<std::size_t>(Privacy::kEncrypted)] = 1;
      EXPECT_EQ(counts.protections, expected);
    }
  }
}

// A copy within the host crosses no network, so it counts as private.
TEST_F(RequireEncrypted, ACopyWithinTheHostDoes) {
  open("local", Privacy::kAuto);
  const std::string path = move();
  EXPECT_TRUE(path.starts_with("local/")) << path;
}

}  // namespace
}  // namespace viaduct
