// Several hosts with several links each: the same tests for every backend that reaches other hosts.
#include <gtest/gtest.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster/hosts.h"
#include "process/process.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLong = 96 << 20;
// The silence in milliseconds after which a peer is lost, in tests of other things. A busy machine
// stops a process for a shorter time.
constexpr int kSlow = 8000;

TEST(Host, HasNothingInCommonWithOthers) {
  const Host host("alone");
  if (!host.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  Process shell({"sh"}, host.pid());
  EXPECT_EQ(shell.ask("hostname"), "alone");
  EXPECT_EQ(shell.ask("ls /dev/shm | wc -l"), "0");
  EXPECT_EQ(shell.ask("ls /sys/class/net"), "lo");
  EXPECT_EQ(shell.ask("ipcs -m | grep -c 0x"), "0");
  // Its own init, this shell, and the commands that it runs.
  EXPECT_LE(std::stoi(shell.ask("ls -d /proc/[0-9]* | wc -l").value_or("99")), 5);
}

TEST(Desk, LinksAreCutDroppedHealedAndCounted) {
  const Desk desk(2, 2);
  if (!desk.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  ASSERT_TRUE(desk.limit(500));
  // A host that is up refuses at once; otherwise the command times out.
  const auto answers = [&](std::size_t link, const char* seconds) {
    return desk[0].run(std::string("timeout ") + seconds + " bash -c \"</dev/tcp/" +
                       Desk::address(1, link) + "/9\" 2>/dev/null; test $? -ne 124");
  };
  const auto reaches = [&](std::size_t link) { return answers(link, "60"); };
  const auto silent = [&](std::size_t link) { return !answers(link, "0.5"); };
  EXPECT_TRUE(reaches(0) && reaches(1));
  ASSERT_TRUE(desk.cut(1, 1));
  EXPECT_TRUE(reaches(0));
  EXPECT_TRUE(silent(1));
  ASSERT_TRUE(desk.heal(1, 1));
  ASSERT_TRUE(desk.drop(1, 0));
  EXPECT_TRUE(silent(0));
  EXPECT_TRUE(reaches(1));
  ASSERT_TRUE(desk.heal(1, 0));
  EXPECT_TRUE(reaches(0));
  const auto before = desk[1].received("rail0"), sent = desk[0].sent("rail0");
  ASSERT_TRUE(desk[0].run("bash -c \"printf %01000d 0 >/dev/udp/" + Desk::address(1, 0) + "/9\""));
  // Sent bytes arrive with a delay, because the kernel moves them from link to link in its own
  // time.
  for (const Deadline until = 60s; desk[1].received("rail0") - before < 1000;)
    ASSERT_FALSE(until.passed());
  EXPECT_GE(desk[0].sent("rail0") - sent, 1000U);
}

std::vector<std::string> backendsBetweenHosts() { return {"tcp", "ofi", "ucx"}; }

class Hosts : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::uint64_t kBytes = 4 << 20;

  void SetUp() override {
    const auto built = builtInBackends();
    if (std::find(built.begin(), built.end(), GetParam()) == built.end())
      GTEST_SKIP() << "skipped: the backend " << GetParam() << " is not built";
  }
  bool make(std::size_t hosts, std::size_t links) {
    desk_ = std::make_unique<Desk>(hosts, links);
    return desk_->made();
  }
  // Starts an agent on each host, over all of its links.
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

  // Two hosts; host 0 writes a long transfer "t" of `bytes` bytes to host 1.
  void startTwo(std::size_t links, unsigned megabits, int detect = kSlow,
                std::uint64_t bytes = kLong) {
    ASSERT_TRUE(desk_->limit(megabits));
    start(" detect=" + std::to_string(detect));
    for (const auto& agent : agents_) agent->must("memory far " + std::to_string(bytes));
    agents_[0]->must("import " + agents_[1]->card());
    agents_[0]->must("ready 1 20000");
    agents_[0]->must("plan t write 1 far far 65536");
    for (std::size_t i = 0; i < links; ++i) before_.push_back((*desk_)[0].sent(Desk::rail(i)));
  }
  std::uint64_t sentOver(std::size_t link) {
    return (*desk_)[0].sent(Desk::rail(link)) - before_[link];
  }
  // Posts, calls `happens` once `after` bytes have passed over that link, and waits. Returns the
  // time of all that.
  template <class F>
  Clock::duration post(int byte, std::size_t link, std::uint64_t after, F happens) {
    agents_[0]->must("fill far " + std::to_string(byte));
    const auto start = Clock::now();
    const std::uint64_t from = sentOver(link);
    agents_[0]->must("post t");
    while (sentOver(link) < from + after && Clock::now() < start + 20s)
      std::this_thread::sleep_for(1ms);
    happens();
    path_ = agents_[0]->must("wait t 25000");
    const auto took = Clock::now() - start;
    EXPECT_EQ(agents_[1]->number("differ far " + std::to_string(byte)), 0);
    return took;
  }
  static std::size_t shares(const std::string& path) {
    return 1 + static_cast<std::size_t>(std::count(path.begin(), path.end(), ','));
  }

  std::unique_ptr<Desk> desk_;
  std::vector<std::unique_ptr<PeerProcess>> agents_;
  std::vector<std::uint64_t> before_;
  std::string path_;
};

// Each host writes to the next, all at once, and reads back from it.
TEST_P(Hosts, MoveBytesInARing) {
  for (const std::size_t count : {2U, 4U, 8U, 16U}) {
    agents_.clear();
    if (!make(count, 1)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
    start(" detect=" + std::to_string(kSlow));
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

TEST_P(Hosts, WithFourLinksUseThemAlike) {
  if (!make(2, 4)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  // Links slow enough to be the limit, however busy the processors are.
  constexpr std::uint64_t kSome = 24 << 20;
  startTwo(4, 20, kSlow, kSome);
  post(1, 0, 0, [] {});
  EXPECT_EQ(shares(path_), 4U) << path_;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GT(sentOver(i), kSome * 15 / 100) << i << ": " << path_;
    EXPECT_LT(sentOver(i), kSome * 35 / 100) << i << ": " << path_;
  }
}

// One link becomes slower than the others. It carries less, and the others do not wait for it.
TEST_P(Hosts, LeaveLessToASlowLink) {
  if (!make(2, 2)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  startTwo(2, 200);  // Mbit/s: slow links, so that the processor is not the limit
  ASSERT_TRUE((*desk_)[0].limit("rail1", 20));
  post(1, 0, 0, [] {});
  const double ratio = static_cast<double>(sentOver(0)) / static_cast<double>(sentOver(1));
  std::printf("%.2f times as much over the link that is ten times as fast\n", ratio);
  EXPECT_GT(ratio, 1.5) << "half each would be 1; where processors are short it is less than 5";
  EXPECT_LT(ratio, 6) << "it has some slices from the start";
}

class CutLinks : public Hosts {
 protected:
  // One of four links fails in this way in the middle of a transfer, and comes back.
  void failAndHeal(bool (Desk::*fault)(std::size_t, std::size_t) const) {
    startTwo(4, 300);  // with kSlow, so that the session outlives the link's failure
    const auto whole = post(1, 3, 0, [] {});
    const auto with = post(2, 3, kLong / 16, [&] { EXPECT_TRUE(((*desk_).*fault)(1, 3)); });
    std::printf("%lld ms with all links, %lld ms with one that fails: %s\n",
                static_cast<long long>(whole / 1ms), static_cast<long long>(with / 1ms),
                path_.c_str());
    EXPECT_LT(with, 2 * whole + 12s)
        << "about a second was to be lost; the rest is for a busy machine";
    EXPECT_EQ(agents_[0]->must("ready 1 100"), "1") << "the session is the same";
    // Posts without the link first, and with it once it is back.
    post(3, 0, 0, [] {});
    EXPECT_EQ(shares(path_), 3U) << path_;
    ASSERT_TRUE(desk_->heal(1, 3));
    const auto healed = Clock::now();
    for (int byte = 4; shares(path_) < 4 && Clock::now() < healed + 30s; ++byte)
      post(byte % 100, 0, 0, [] {});
    EXPECT_EQ(shares(path_), 4U) << path_;
    std::printf("used again within %lld ms\n",
                static_cast<long long>((Clock::now() - healed) / 1ms));
  }
};

TEST_P(CutLinks, AreLeftOutAndTheTransferEndsWell) {
  if (!make(2, 4)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  failAndHeal(&Desk::cut);
}

TEST_P(CutLinks, ThatOnlyDropAreLeftOutAsWell) {
  if (!make(2, 4)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  failAndHeal(&Desk::drop);
}

// If all links are silent for a moment, the host stood still, and no single link is to blame.
TEST_P(CutLinks, AreToleratedIfAllAreSilentForAMoment) {
  if (!make(2, 4)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  startTwo(4, 300);
  bool dropped = false;
  post(2, 3, kLong / 16, [&] {
    dropped = desk_->dropAll();
    std::this_thread::sleep_for(1s);
    EXPECT_EQ(desk_->healAll(), dropped);
  });
  if (!dropped) GTEST_SKIP() << "skipped: no nft (package nftables), or no nf_tables in the kernel";
  EXPECT_EQ(shares(path_), 4U) << path_;
  EXPECT_EQ(agents_[0]->must("ready 1 100"), "1") << "the session is the same";
}

// A stopped peer's kernel still acknowledges, so the peer counts as lost, but none of its rails.
TEST_P(CutLinks, AreNotSeenWhereThePeerIsStopped) {
  if (!make(2, 2)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  startTwo(2, 300, 2000);
  agents_[0]->must("storm t");
  agents_[1]->process().stop();
  const std::string failure = agents_[0]->must("calm t 20000");
  EXPECT_NE(failure.find("no frame arrived for"), std::string::npos) << failure;
  agents_[1]->process().resume();
  agents_[0]->must("ready 1 20000");
  post(5, 0, 0, [] {});
  EXPECT_EQ(shares(path_), 2U) << path_;
}

// The first link also carries the session, through which both ends of a rail report its loss.
// `side`: the end whose link fails; end 0 dialed.
class CutSessions : public CutLinks {
 protected:
  // A cut is noticed after a quarter to a half of kDetect. A busy machine may stand still for that
  // long.
  static constexpr int kDetect = 4000;

  // The dialed end becomes ready a little later.
  void connect() {
    start(" detect=" + std::to_string(kDetect));
    agents_[0]->must("import " + agents_[1]->card());
    agents_[0]->must("ready 1 20000");
    agents_[0]->must("note 1 first");
    EXPECT_EQ(agents_[1]->must("takenote 20000"), "0 first");
    agents_[1]->must("ready 0 20000");
  }
  void failTheFirst(bool (Desk::*fault)(std::size_t, std::size_t) const, std::size_t side) {
    if (!make(2, 4)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
    startTwo(4, 300, kDetect);
    const auto whole = post(1, 0, 0, [] {});
    const auto with = post(2, 0, kLong / 16, [&] { EXPECT_TRUE(((*desk_).*fault)(side, 0)); });
    std::printf("%lld ms with all links, %lld ms with one that fails: %s\n",
                static_cast<long long>(whole / 1ms), static_cast<long long>(with / 1ms),
                path_.c_str());
    EXPECT_LT(with, 2 * whole + 12s)
        << "about a second was to be lost; the rest is for a busy machine";
    EXPECT_TRUE(agents_[0]
                    ->ask("over 1 1 " + std::to_string(kDetect + 1000))
                    .starts_with("error timed out"));
    post(3, 1, 0, [] {});
    EXPECT_EQ(shares(path_), 3U) << path_;
    EXPECT_EQ(agents_[0]->must("ready 1 100"), "1") << "the session is the same";
    EXPECT_EQ(agents_[1]->must("ready 0 100"), "1") << "at both ends";
    notesPass(0, 3);
  }
  // Sends numbered notes from both ends.
  void sendNotes(int from, int to) {
    for (int i = from; i < to; ++i) {
      agents_[0]->must("note 1 " + std::to_string(i));
      agents_[1]->must("note 0 " + std::to_string(i));
    }
  }
  void takeNotes(int from, int to) {
    for (int i = from; i < to; ++i) {
      ASSERT_EQ(agents_[1]->must("takenote 20000"), "0 " + std::to_string(i));
      ASSERT_EQ(agents_[0]->must("takenote 20000"), "1 " + std::to_string(i));
    }
  }
  void notesPass(int from, int to) {
    sendNotes(from, to);
    takeNotes(from, to);
  }
  void expectNothingMore() {
    EXPECT_EQ(agents_[0]->must("ready 1 100"), "1") << "the session is the same";
    for (const auto& agent : agents_)
      EXPECT_TRUE(agent->ask("takenote 100").starts_with("error timed out")) << "one came twice";
  }
};

TEST_P(CutSessions, GoOnOverAnotherLinkWhenThePeersIsCut) { failTheFirst(&Desk::cut, 1); }

TEST_P(CutSessions, GoOnOverAnotherLinkWhenTheirOwnIsCut) { failTheFirst(&Desk::cut, 0); }

TEST_P(CutSessions, GoOnOverAnotherLinkWhenOneDropsEverything) { failTheFirst(&Desk::drop, 1); }

// Notes in flight arrive once and in order, from link to link and back.
TEST_P(CutSessions, KeepTheirNotes) {
  if (!make(2, 2)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  connect();
  int next = 0;
  for (const std::size_t link : {0U, 1U, 0U}) {
    notesPass(next, next + 10);
    ASSERT_TRUE(desk_->drop(1, link));
    sendNotes(next + 10, next + 100);
    takeNotes(next + 10, next + 100);
    ASSERT_TRUE(desk_->heal(1, link));
    next += 100;
  }
  expectNothingMore();
}

// Host 0 still receives notes over the old connection until the new one takes over. Its answers are
// lost, so host 1 does not know which notes arrived.
TEST_P(CutSessions, KeepTheirNotesIfOnlyOneDirectionIsCut) {
  if (!make(2, 2)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  connect();
  int next = 0;
  for (const std::size_t link : {0U, 1U, 0U, 1U}) {
    const auto sent = [&] { return (*desk_)[0].sent(Desk::rail(1 - link)); };
    const std::uint64_t before = sent();
    ASSERT_TRUE(desk_->mute(0, link));
    const int first = next;
    const auto until = Clock::now() + 30s;
    for (; sent() < before + 2000 && Clock::now() < until; next += 10) sendNotes(next, next + 10);
    takeNotes(first, next);
    ASSERT_TRUE(desk_->unmute(0, link));
  }
  expectNothingMore();
}

// Without a link, or without a process at the other end, the peer is lost as early as usual.
TEST_P(CutSessions, EndIfThePeerIsGoneAsWell) {
  if (!make(2, 2)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  connect();
  ASSERT_TRUE(desk_->drop(1, 0));
  agents_[1]->process().kill();
  const auto start = Clock::now();
  agents_[0]->must("over 1 1 25000");
  const auto took = Clock::now() - start;
  std::printf("noticed after %lld ms\n", static_cast<long long>(took / 1ms));
  EXPECT_LT(took, kDetect * 1ms + 500ms + 10s) << "the last is for a busy machine";
}

TEST_P(Hosts, ThatAreCutOffComeBack) {
  if (!make(3, 2)) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  start(" detect=4000");  // a busy machine stops a process for longer than two seconds
  for (const std::size_t to : {1U, 2U}) {
    const std::string name = std::to_string(to);
    agents_[0]->must("import " + agents_[to]->card());
    agents_[0]->must("ready " + name + " 20000");
    agents_[0]->must(
        std::string("plan t").append(name).append(" write ").append(name).append(" out in 65536"));
  }
  for (const std::size_t link : {0U, 1U}) ASSERT_TRUE(desk_->cut(1, link));
  agents_[0]->must("over 1 1 20000");
  agents_[0]->must("post t2");
  agents_[0]->must("wait t2 20000");
  for (const std::size_t link : {0U, 1U}) ASSERT_TRUE(desk_->heal(1, link));
  agents_[0]->must("ready 1 20000");
  agents_[0]->must("fill out 9");
  agents_[0]->must("post t1");
  agents_[0]->must("wait t1 20000");
  EXPECT_EQ(agents_[1]->number("differ in 9"), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, CutLinks, ::testing::ValuesIn(backendsBetweenHosts()),
                         [](const auto& backend) { return backend.param; });
INSTANTIATE_TEST_SUITE_P(Every, CutSessions, ::testing::ValuesIn(backendsBetweenHosts()),
                         [](const auto& backend) { return backend.param; });
INSTANTIATE_TEST_SUITE_P(Every, Hosts, ::testing::ValuesIn(backendsBetweenHosts()),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace viaduct::testing
