// The ucx backend between hosts: over one link, over two, and over one that falls silent.
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

constexpr std::uint64_t kBytes = 32 << 20;

class UcxCluster : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto all = builtInBackends();
    if (std::find(all.begin(), all.end(), "ucx") == all.end())
      GTEST_SKIP() << "skipped: ucx is not built in";
    if (!a_.made() || !b_.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
    ASSERT_TRUE(join(a_, b_, "rail0", "10.77.0.1/24", "10.77.0.2/24"));
    ASSERT_TRUE(join(a_, b_, "rail1", "10.77.1.1/24", "10.77.1.2/24"));
  }
  // The session goes over rail0, the data over what `rails` says.
  void connect(const std::string& rails) {
    server_ = start("a", "10.77.0.1:0", rails, a_);
    client_ = start("b", "10.77.0.2:0", rails, b_);
    for (PeerProcess* peer : {server_.get(), client_.get()})
      peer->must("memory data " + std::to_string(kBytes));
    client_->must("import " + server_->card());
    client_->must("ready a 10000");
    client_->must("plan t write a data data 65536");
  }
  // UCX takes its devices from /sys, which shows the namespace of whoever mounted it.
  static std::unique_ptr<PeerProcess> start(const std::string& name, const std::string& listen,
                                            const std::string& rails, const Host& host) {
    const std::vector<std::string> own_sys{
        "unshare", "--mount", "--", "sh", "-c", "mount -t sysfs sysfs /sys && exec \"$0\" \"$@\""};
    return std::make_unique<PeerProcess>(
        "name=" + name + " backends=ucx detect=1000 listen=" + listen + " rails=" + rails,
        host.pid(), own_sys);
  }
  void expectWorks(int byte) {
    client_->must("fill data " + std::to_string(byte));
    client_->must("post t");
    path_ = client_->must("wait t 20000");
    EXPECT_EQ(server_->number("differ data " + std::to_string(byte)), 0);
  }

  Host a_, b_;
  std::unique_ptr<PeerProcess> server_, client_;
  std::string path_;
};

TEST_F(UcxCluster, TwoHostsMoveBytesOverTheRailThatIsNamed) {
  const auto before = b_.sent("rail1");
  connect("rail1");
  expectWorks(5);
  EXPECT_EQ(path_.find("ucx/tcp"), 0U) << path_;
  EXPECT_NE(path_.find("rail1"), std::string::npos) << path_;
  EXPECT_GT(b_.sent("rail1") - before, kBytes) << "the bytes went over the link";
}

TEST_F(UcxCluster, TwoLinksAreStriped) {
  connect("rail0,rail1");
  const auto before0 = b_.sent("rail0"), before1 = b_.sent("rail1");
  expectWorks(8);
  EXPECT_GT(b_.sent("rail0") - before0, kBytes / 3) << path_;
  EXPECT_GT(b_.sent("rail1") - before1, kBytes / 3) << path_;
}

// UCX itself says nothing of it for a minute and more.
TEST_F(UcxCluster, ASilentRailIsNoticedWhileTheSessionLivesAndComesBack) {
  connect("rail0,rail1");
  client_->must("storm t");
  ASSERT_TRUE(a_.ip("link set rail1 down"));
  const auto cut = Clock::now();
  // Where the agent gives a lost rail's work to another, nothing fails.
  const std::string failure = client_->ask("calm t 4000");
  std::printf("%lld ms after the cut: %s\n", static_cast<long long>((Clock::now() - cut) / 1ms),
              failure.c_str());
  EXPECT_TRUE(failure.find("peer is well") != std::string::npos || failure.starts_with("error"))
      << failure;
  expectWorks(9);
  ASSERT_TRUE(a_.ip("link set rail1 up"));
  client_->must("ready a 20000");
  const auto end = Clock::now() + 20s;
  do expectWorks(10);
  while (path_.find("rail1") == std::string::npos && Clock::now() < end);
  EXPECT_NE(path_.find("rail1"), std::string::npos) << "the rail is back: " << path_;
}

}  // namespace
}  // namespace viaduct::testing
