// The ucx backend between hosts: over one link, over two, and over a link that falls silent.
#include <gtest/gtest.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cluster/hosts.h"
#include "process/process.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

class UcxCluster : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 32 << 20;

  void SetUp() override {
    const auto all = builtInBackends();
    if (std::find(all.begin(), all.end(), "ucx") == all.end())
      GTEST_SKIP() << "skipped: ucx is not built in";
    if (!desk_.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  }
  // The session uses rail0, and the data uses `rails`.
  void connect(const std::string& rails) {
    server_ = start(0, rails);
    client_ = start(1, rails);
    client_->must("import " + server_->card());
    client_->must("ready host0 10000");
    client_->must("plan t write host0 data data 65536");
  }
  std::unique_ptr<PeerProcess> start(std::size_t host, const std::string& rails) {
    auto peer = std::make_unique<PeerProcess>(
        "name=host" + std::to_string(host) +
            " backends=ucx detect=1000 listen=" + Desk::address(host) + ":0 rails=" + rails,
        desk_[host].pid());
    peer->must("memory data " + std::to_string(kBytes));
    return peer;
  }
  void expectWorks(int byte) {
    client_->must("fill data " + std::to_string(byte));
    client_->must("post t");
    path_ = client_->must("wait t 20000");
    EXPECT_EQ(server_->number("differ data " + std::to_string(byte)), 0);
  }
  // Whether a transfer uses the second rail again within `limit`.
  bool worksOverBoth(Duration limit) {
    for (const auto end = Clock::now() + limit; Clock::now() < end;) {
      client_->ask("post t");
      path_ = client_->ask("wait t 20000");
      if (path_.starts_with("ok") && path_.find("rail1") != std::string::npos) return true;
    }
    return false;
  }
  std::uint64_t sent(const char* rail) const { return desk_[1].sent(rail); }

  const Desk desk_{2, 2};
  std::unique_ptr<PeerProcess> server_, client_;
  std::string path_;
};

TEST_F(UcxCluster, TwoHostsMoveBytesOverTheRailThatIsNamed) {
  const auto before = sent("rail1");
  connect("rail1");
  expectWorks(5);
  EXPECT_EQ(path_.find("ucx/tcp"), 0U) << path_;
  EXPECT_GT(sent("rail1") - before, kBytes) << "the bytes went over the link";
}

TEST_F(UcxCluster, TwoLinksAreStriped) {
  connect("rail0,rail1");
  const auto before0 = sent("rail0"), before1 = sent("rail1");
  expectWorks(8);
  EXPECT_GT(sent("rail0") - before0, kBytes / 3) << path_;
  EXPECT_GT(sent("rail1") - before1, kBytes / 3) << path_;
}

// UCX itself would report the silent rail only after more than a minute.
TEST_F(UcxCluster, ASilentRailIsNoticedWhileTheSessionLivesAndComesBack) {
  connect("rail0,rail1");
  client_->must("storm t");
  ASSERT_TRUE(desk_.drop(0, 1));
  const auto cut = Clock::now();
  // The agent may give a lost rail's work to another rail: then nothing fails, and the transfers go
  // on.
  const std::string failure = client_->ask("calm t 4000");
  std::printf("%lld ms after the cut: %s\n", static_cast<long long>((Clock::now() - cut) / 1ms),
              failure.c_str());
  const bool goes_on = failure.starts_with("error");
  EXPECT_TRUE(goes_on || failure.find("the peer is alive") != std::string::npos) << failure;
  EXPECT_LT(Clock::now() - cut, goes_on ? 20s : 3s);
  ASSERT_TRUE(desk_.heal(0, 1));
  EXPECT_TRUE(worksOverBoth(20s)) << path_;
}

}  // namespace
}  // namespace viaduct::testing
