#include "meet/identity.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace viaduct::meet {
namespace {

TEST(ProcessIdentity, WeAreAliveAndOthersAreNotProvenDead) {
  ASSERT_FALSE(ownIdentity().empty());
  EXPECT_FALSE(isProvablyDead(ownIdentity()));
  for (const char* text : {"", "|", "x|1 2", "|1 2", "another boot|999999 1"})
    EXPECT_FALSE(isProvablyDead(text)) << text;
  const std::string world = ownIdentity().substr(0, ownIdentity().rfind('|'));
  for (const char* process : {"", "x", "-1 5", "0 5", "5", "99999999999 5"})
    EXPECT_FALSE(isProvablyDead(world + "|" + process)) << process;
}

TEST(ProcessIdentity, AProcessThatHasEndedIsDead) {
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  const std::string world = ownIdentity().substr(0, ownIdentity().rfind('|'));
  EXPECT_TRUE(isProvablyDead(world + "|" + std::to_string(pid) + " 12345"));
}

// The system fails to read the file of a process that has ended since the file was opened.
TEST(ProcessIdentity, AProcessMayEndWhileItIsLookedAt) {
  const std::string world = ownIdentity().substr(0, ownIdentity().rfind('|'));
  std::atomic<pid_t> latest{::getpid()};
  std::atomic<bool> more{true};
  std::uint64_t dead = 0;
  std::thread looker([&] {
    while (more) dead += isProvablyDead(world + "|" + std::to_string(latest) + " 1") ? 1 : 0;
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    latest = pid;
    EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  }
  more = false;
  looker.join();
  EXPECT_GT(dead, 0U);
}

TEST(ProcessIdentity, AReusedPidIsNoSignOfLife) {
  const std::string world = ownIdentity().substr(0, ownIdentity().rfind('|'));
  EXPECT_TRUE(isProvablyDead(world + "|" + std::to_string(::getpid()) + " 1"));
}

}  // namespace
}  // namespace viaduct::meet
