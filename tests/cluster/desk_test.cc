// Several hosts, each with links of its own: the same for every backend that reaches other hosts.
#include <gtest/gtest.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cluster/hosts.h"
#include "process/process.h"

namespace viaduct::testing {
namespace {

constexpr std::uint64_t kBytes = 4 << 20;

TEST(Host, HasNothingInCommonWithOthers) {
  const Host host("alone");
  if (!host.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  Process shell({"sh"}, host.pid());
  EXPECT_EQ(shell.ask("hostname"), "alone");
  EXPECT_EQ(shell.ask("ls /dev/shm | wc -l"), "0");
  EXPECT_EQ(shell.ask("ls /sys/class/net"), "lo");
  EXPECT_EQ(shell.ask("ipcs -m | grep -c 0x"), "0");
  // Its own init, this shell, and what it asks.
  EXPECT_LE(std::stoi(shell.ask("ls -d /proc/[0-9]* | wc -l").value_or("99")), 5);
}

TEST(Desk, LinksAreCutDroppedHealedAndCounted) {
  const Desk desk(2, 2);
  if (!desk.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  ASSERT_TRUE(desk.limit(500));
  // Refused at once by a host that is there; else time runs out.
  const auto reaches = [&](std::size_t link) {
    return desk[0].run("timeout 0.5 bash -c \"</dev/tcp/" + Desk::address(1, link) +
                       "/9\" 2>/dev/null; test $? -ne 124");
  };
  EXPECT_TRUE(reaches(0) && reaches(1));
  ASSERT_TRUE(desk.cut(1, 1));
  EXPECT_TRUE(reaches(0));
  EXPECT_FALSE(reaches(1));
  ASSERT_TRUE(desk.heal(1, 1));
  ASSERT_TRUE(desk.drop(1, 0));
  EXPECT_FALSE(reaches(0));
  EXPECT_TRUE(reaches(1));
  ASSERT_TRUE(desk.heal(1, 0));
  EXPECT_TRUE(reaches(0));
  const auto before = desk[1].received("rail0"), sent = desk[0].sent("rail0");
  ASSERT_TRUE(desk[0].run("bash -c \"printf %01000d 0 >/dev/udp/" + Desk::address(1, 0) + "/9\""));
  EXPECT_GE(desk[1].received("rail0") - before, 1000U);
  EXPECT_GE(desk[0].sent("rail0") - sent, 1000U);
}

std::vector<std::string> backendsBetweenHosts() { return {"tcp", "ofi", "ucx"}; }

class Hosts : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto built = builtInBackends();
    if (std::find(built.begin(), built.end(), GetParam()) == built.end())
      GTEST_SKIP() << "skipped: the backend " << GetParam() << " is not built";
  }
  bool make(std::size_t hosts, std::size_t links) {
    desk_ = std::make_unique<Desk>(hosts, links);
    return desk_->made();
  }
  // An agent on each host, over all of its links.
  void start(const std::string& more = "") {
    for (std::size_t i = 0; i < desk_->size(); ++i) {
      agents_.push_back(std::make_unique<PeerProcess>(
          "name=" + std::to_string(i) + " backends=" + GetParam() + " listen=" + desk_->listen(i) +
              (desk_->links() > 1 ? " rails=" + desk_->rails(i) : "") + more,
          (*desk_)[i].pid()));
      agents_.back()->must("memory in " + std::to_string(kBytes));
      agents_.back()->must("memory out " + std::to_string(kBytes));
    }
  }

  std::unique_ptr<Desk> desk_;
  std::vector<std::unique_ptr<PeerProcess>> agents_;
};

// Each writes to the next, all at once, and reads back from it.
TEST_P(Hosts, OfAnyNumberMoveBytesInARing) {
  for (const std::size_t count : {2U, 4U, 8U, 16U}) {
    agents_.clear();
    if (!make(count, 1)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
    start();
    const auto next = [&](std::size_t i) { return (i + 1) % count; };
    for (std::size_t i = 0; i < count; ++i) agents_[i]->must("import " + agents_[next(i)]->card());
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = std::to_string(next(i));
      agents_[i]->must("ready " + name + " 20000");
      agents_[i]->must("plan t write " + name + " out in 65536");
      agents_[i]->must("fill out " + std::to_string(i + 1));
    }
    for (std::size_t i = 0; i < count; ++i) agents_[i]->must("post t");
    for (std::size_t i = 0; i < count; ++i) {
      const std::string path = agents_[i]->must("wait t 20000");
      EXPECT_TRUE(path.starts_with(GetParam())) << path;
    }
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(agents_[next(i)]->number("differ in " + std::to_string(i + 1)), 0)
          << i << " of " << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Hosts, ::testing::ValuesIn(backendsBetweenHosts()),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace viaduct::testing
