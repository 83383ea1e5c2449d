// Agents on separate hosts, whose network fails in many ways.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cluster/hosts.h"
#include "process/process.h"
#include "process/words.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kDetect = 2s;
constexpr auto kSlack = 500ms + 10s;  // the promised time, and 10 s for a busy machine

class Cluster : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 32 << 20;

  void SetUp() override {
    if (!a_.made() || !b_.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
    ASSERT_TRUE(join(a_, b_, "rail0", "10.77.0.1/24", "10.77.0.2/24"));
  }
  // A listens at `listen`. B, which has memory "data", connects to it.
  void connect(const std::string& listen, const std::string& more_a = "",
               const std::string& more_b = "") {
    const std::string detect = " detect=" + std::to_string(kDetect / 1ms);
    server_ = std::make_unique<PeerProcess>("name=a listen=" + listen + detect + more_a, a_.pid());
    client_ =
        std::make_unique<PeerProcess>("name=b listen=" + listen_b_ + detect + more_b, b_.pid());
    for (PeerProcess* peer : {server_.get(), client_.get()})
      peer->must("memory data " + std::to_string(kBytes));
    client_->must("import " + server_->card());
    client_->must("ready a 10000");
    client_->must("plan t write a data data 65536");
  }
  // Connects over two links; each has its own address for listening and for outgoing connections.
  void connectTwice() {
    ASSERT_TRUE(join(a_, b_, "rail1", "10.77.1.1/24", "10.77.1.2/24"));
    connect("10.77.0.1:0,10.77.1.1:0", " rails=10.77.0.1,10.77.1.1", " rails=10.77.0.2,10.77.1.2");
  }
  void expectWorks(int byte) {
    client_->must("fill data " + std::to_string(byte));
    client_->must("post t");
    path_ = client_->must("wait t 20000");
    EXPECT_EQ(server_->number("differ data " + std::to_string(byte)), 0);
  }

  Host a_, b_;
  std::string listen_b_ = "10.77.0.2:0";
  std::unique_ptr<PeerProcess> server_, client_;
  std::string path_;
};

TEST_F(Cluster, TwoHostsMoveBytesOverTcp) {
  const auto before = b_.sent("rail0");
  connect("10.77.0.1:0");
  expectWorks(5);
  EXPECT_EQ(path_.find("tcp/"), 0U) << path_;
  EXPECT_GT(b_.sent("rail0") - before, kBytes) << "the bytes went over the link";
}

TEST_F(Cluster, TwoHostsMoveBytesOverIpv6) {
  ASSERT_TRUE(join(a_, b_, "rail6", "fd77::1/64", "fd77::2/64"));
  listen_b_ = "[fd77::2]:0";
  connect("[fd77::1]:0");
  expectWorks(6);
}

TEST_F(Cluster, ACutLinkIsNoticedByBothAndHeals) {
  connect("10.77.0.1:0");
  client_->must("storm t");
  ASSERT_TRUE(a_.ip("link set rail0 down"));
  const auto cut = Clock::now();
  client_->process().send("calm t 20000");
  server_->must("over b 1 20000");
  const auto server_noticed = Clock::now() - cut;
  const std::string failure = client_->process().answer(20s).value_or("nothing");
  const auto client_noticed = Clock::now() - cut;
  std::printf("noticed after %lld ms at the target and %lld ms at the initiator: %s\n",
              static_cast<long long>(server_noticed / 1ms),
              static_cast<long long>(client_noticed / 1ms), failure.c_str());
  EXPECT_NE(failure.find("peer lost"), std::string::npos);
  EXPECT_LT(server_noticed, kDetect + kSlack);
  EXPECT_LT(client_noticed, kDetect + kSlack);

  ASSERT_TRUE(a_.ip("link set rail0 up"));
  client_->must("ready a 20000");
  expectWorks(7);
}

TEST_F(Cluster, APeerBehindACutLinkCannotBeReachedAndThenCan) {
  connect("10.77.0.1:0");
  PeerProcess late("name=late listen=" + listen_b_, b_.pid());
  ASSERT_TRUE(b_.ip("link set rail0 down"));
  late.must("import " + server_->card());
  const auto start = Clock::now();
  const std::string answer = late.ask("ready a 1000");
  EXPECT_LT(Clock::now() - start, 1s + kSlack);
  std::printf("%s\n", answer.c_str());
  EXPECT_TRUE(answer.starts_with("error")) << answer;
  ASSERT_TRUE(b_.ip("link set rail0 up"));
  late.must("ready a 20000");
}

TEST_F(Cluster, TwoLinksAreStriped) {
  connectTwice();
  const auto before0 = b_.sent("rail0");
  const auto before1 = b_.sent("rail1");
  expectWorks(8);
  const auto on0 = b_.sent("rail0") - before0;
  const auto on1 = b_.sent("rail1") - before1;
  std::printf("%s; on the links %llu and %llu bytes\n", path_.c_str(),
              static_cast<unsigned long long>(on0), static_cast<unsigned long long>(on1));
  EXPECT_GT(on0, kBytes / 3);
  EXPECT_GT(on1, kBytes / 3);
}

TEST_F(Cluster, ACutRailEndsTransfersInTimeAndHeals) {
  connectTwice();
  client_->must("storm t");
  ASSERT_TRUE(a_.ip("link set rail1 down"));
  const auto cut = Clock::now();
  // If the session uses rail0, transfers may go on there, or end with an error in time.
  const std::string failure = client_->ask("calm t 5000");
  std::printf("%lld ms after the cut: %s\n", static_cast<long long>((Clock::now() - cut) / 1ms),
              failure.c_str());
  ASSERT_TRUE(a_.ip("link set rail1 up"));
  client_->must("ready a 20000");
  if (failure.starts_with("ok")) expectWorks(9);
}

// A peer in its own PID namespace sees no process of ours. The backend then avoids everything that
// needs a pid, and the peer reports that.
TEST(PidNamespace, APeerInItsOwnDegradesAloud) {
  if (!mayUnshare({"--pid", "--fork", "--mount-proc"}))
    GTEST_SKIP() << "skipped: no right to make a PID namespace";
  PeerProcess outside("name=outside backends=local,tcp");
  outside.must("memory heap 1048576 heap");
  PeerProcess inside("name=inside backends=local,tcp", 0,
                     {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"});
  inside.must("memory heap 1048576 heap");
  inside.must("fill heap 4");
  inside.must("import " + outside.card());
  inside.must("ready outside 10000");
  const std::string ways = inside.must("ways outside");
  std::printf("%s\n", ways.c_str());
  EXPECT_NE(ways.find("cma"), std::string::npos) << "it says what it does without";
  inside.must("plan t write outside heap heap 65536");
  inside.must("post t");
  const std::string path = inside.must("wait t 10000");
  EXPECT_EQ(path.find("cma"), std::string::npos) << path;
  EXPECT_EQ(outside.number("differ heap 4"), 0);
}

}  // namespace
}  // namespace viaduct::testing
