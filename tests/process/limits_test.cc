// Refusals by the system, and calls that a process may not make, are errors and not crashes. Two
// agents with one name are told apart or refused.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "process/pair.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

// Runs a function in a forked child, and returns its result, which the child passes as exit code.
template <class F>
int inChild(F run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, AChildsCallsAreRefusedAndTheParentIsNotDisturbed) {
  Survivor survivor(kDataPaths[0]);
  auto victim = survivor.start();
  auto pin = survivor.agent().allocate(4096);
  ASSERT_TRUE(pin);
  const Peer peer = survivor.peer();
  const auto epoch = peer.epoch();
  const int refused = inChild([&] {
    const auto allocated = survivor.agent().allocate(4096);
    const auto note = peer.note("from the child");
    const auto waited = survivor.agent().waitNote(10s);
    // A child may destroy inherited objects, because its exit() does so.
    const Agent gone = std::move(survivor.agent());
    const auto bit = [](const auto& result, int value) {
      return !result && result.error().code == Code::kInvalid ? value : 0;
    };
    return bit(allocated, 1) | bit(note, 2) | bit(waited, 4);
  });
  EXPECT_EQ(refused, 7) << "a bit per call that was refused";
  EXPECT_EQ(peer.epoch(), epoch);
  EXPECT_EQ(peer.state(), PeerState::kReady);
  survivor.expectWorks(*victim);
}

// The open sockets of a process, by their names in /proc.
std::set<std::string> socketsOf(const std::string& pid) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + pid + "/fd")) {
    std::error_code gone;
    const auto name = std::filesystem::read_symlink(entry.path(), gone).string();
    if (name.starts_with("socket:")) names.insert(name);
  }
  return names;
}

TEST(Fork, AProgramWeStartInheritsNoSocket) {
  Survivor survivor(kDataPaths[2]);
  auto victim = survivor.start();
  PeerProcess fresh("name=fresh");
  const auto ours = socketsOf("self");
  for (const std::string& name : socketsOf(std::to_string(fresh.process().pid())))
    EXPECT_FALSE(ours.contains(name)) << name;
}

TEST(Names, TwoAgentsWithOneNameAreToldApartOrRefused) {
  Survivor survivor(kDataPaths[2]);
  auto first = survivor.start("twin");
  const auto epoch = survivor.peer("twin").epoch();
  PeerProcess second(survivor.settings("twin"));
  second.must("import " + toHex(survivor.agent().exportCard()));
  const std::string answer = second.ask("ready survivor 3000");
  std::printf("%s\n", answer.c_str());
  EXPECT_TRUE(answer.starts_with("error")) << "the first one lives";
  EXPECT_NE(answer.find("twin"), std::string::npos) << "the reason names the name";
  // The first agent keeps its session.
  EXPECT_EQ(survivor.peer("twin").epoch(), epoch);
  EXPECT_TRUE(survivor.peer("twin").note("still here"));
  EXPECT_EQ(first->must("takenote 10000"), "survivor still here");
}

// An agent keeps its name until it is lost. A silent agent is lost after Settings::detect.
TEST(Names, ASilentAgentKeepsItsNameUntilItIsLost) {
  Survivor survivor(kDataPaths[2], 4s);
  auto first = survivor.start("twin");
  const Peer twin = survivor.peer("twin");
  const auto epoch = twin.epoch();
  first->process().stop();
  PeerProcess second(survivor.settings("twin"));
  second.must("import " + toHex(survivor.agent().exportCard()));
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(twin.over(epoch, 20s));
  second.must("ready survivor 20000");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("no frame arrived for"), std::string::npos) << log;
  EXPECT_EQ(log.find("new session"), std::string::npos) << log;
}

TEST(Limits, TooFewDescriptorsToOpenIsAnErrorThatSaysSo) {
  // A program without an agent, whose limit is just above its open files.
  Process process({kProcessPeer});
  EXPECT_EQ(process.ask("limit files 4").value_or("nothing").substr(0, 2), "ok");
  const std::string answer = process.ask("open name=poor").value_or("nothing");
  std::printf("%s\n", answer.c_str());
  EXPECT_TRUE(answer.starts_with("error")) << answer;
  EXPECT_NE(answer.find(codeName(Code::kExhausted)), std::string::npos) << answer;
}

TEST(Limits, TooFewDescriptorsForAPeerHarmNoOtherPeer) {
  Survivor survivor(kDataPaths[2]);
  auto poor = survivor.start("poor");
  PeerProcess late(survivor.settings("late"));
  poor->must("limit files 4");  // open files stay open, but no new ones can be opened
  const std::string answer = poor->ask("import " + late.card());
  if (answer.starts_with("ok")) {
    const std::string ready = poor->ask("ready late 1000");
    std::printf("%s\n", ready.c_str());
    EXPECT_TRUE(ready.starts_with("error")) << ready;
  }
  late.must("import " + poor->card());
  EXPECT_TRUE(late.ask("ready poor 1000").starts_with("error"));
  // A connected peer is not affected.
  EXPECT_TRUE(survivor.peer("poor").note("hello"));
  EXPECT_EQ(poor->must("takenote 10000"), "survivor hello");
  poor->must("limit files 256");
  late.must("ready poor 20000");
}

class Shortage : public ::testing::TestWithParam<DataPath> {
 protected:
  // A process that can open `left` more descriptors. It dials the survivor, or is dialed by it.
  std::unique_ptr<PeerProcess> start(int left, bool dials) {
    auto process = std::make_unique<PeerProcess>(survivor_.settings("victim"));
    process->must("memory small " + std::to_string(Survivor::kSmall) +
                  (GetParam().heap ? " heap" : ""));
    process->must("limit files 256");
    process->must("shortage " + std::to_string(left));
    if (dials)
      process->must("import " + toHex(survivor_.agent().exportCard()));
    else
      EXPECT_TRUE(survivor_.agent().importCard(fromHex(process->card())));
    return process;
  }
  void expectRecovers(PeerProcess& victim) {
    victim.must("plenty");
    ASSERT_TRUE(met());
    victim.must("ready survivor 20000");  // the survivor may have been ready earlier
    ASSERT_TRUE(survivor_.peer().ready(20s));
    survivor_.expectWorks(victim);
    survivor_.peer().forget();
  }
  Survivor survivor_{GetParam()};

 private:
  // Waits for the peer, because a peer that dials is unknown until it connects.
  bool met() {
    const Deadline until = 20s;
    auto peer = survivor_.agent().peer("victim");
    while (!peer && !until.passed()) peer = survivor_.agent().peer("victim");
    return peer && peer->ready(until);
  }
};

// Each number of free descriptors makes another step of the connection fail.
TEST_P(Shortage, BackendsAreTriedAgain) {
  for (int left = 2; left <= 10; ++left) {
    for (const bool dials : {true, false}) {
      SCOPED_TRACE((dials ? "dials, " : "is dialed, ") + std::to_string(left));
      const auto victim = start(left, dials);
      if (dials)
        victim->ask("ready survivor 100");
      else
        static_cast<void>(survivor_.peer().ready(100ms));
      expectRecovers(*victim);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Every, Shortage, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

// The shortages begin and end at any step. Runs without libfabric and UCX, which promise nothing
// about such shortages.
using ShortMoments = Shortage;
TEST_P(ShortMoments, LeaveNoPeerWithoutABackend) {
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const auto victim = start(12, round % 2 == 0);
    for (int moment = 0; moment < 20; ++moment) {
      victim->must("shortage 0");
      victim->must("plenty");
    }
    expectRecovers(*victim);
  }
}
INSTANTIATE_TEST_SUITE_P(Ours, ShortMoments, ::testing::ValuesIn(std::span(kDataPaths).first<3>()),
                         [](const auto& path) { return std::string(path.param.name); });

TEST(Limits, TooLittleMemoryIsAnErrorThatSaysSo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
  GTEST_SKIP() << "skipped: no limit of address space under a sanitizer";
#endif
  PeerProcess peer("name=small");
  peer.must("limit memory 1073741824");
  const std::string answer = peer.ask("memory huge 8589934592");
  std::printf("%s\n", answer.c_str());
  EXPECT_NE(answer.find(codeName(Code::kExhausted)), std::string::npos) << answer;
  peer.must("memory modest 65536");
}

}  // namespace
}  // namespace viaduct::testing
