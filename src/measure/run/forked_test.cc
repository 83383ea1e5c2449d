#include "measure/run/forked.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace viaduct::measure::matrix {
namespace {

TEST(InChild, TheTextOfAnotherProcessArrivesWhole) {
  const base::StopFlag stop{false};
  const auto text =
      inChild([] { return std::string(1U << 20U, 'x') + std::to_string(::getpid()); }, stop);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(text->substr(0, 1U << 20U), std::string(1U << 20U, 'x'));
  EXPECT_NE(text->substr(1U << 20U), std::to_string(::getpid()));
}

TEST(InChild, AKilledChildIsAnError) {
  const base::StopFlag stop{false};
  const auto text = inChild(
      [] {
        ::kill(::getpid(), SIGKILL);
        return std::string();
      },
      stop);
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().detail.find("killed by signal 9"), std::string::npos);
}

// The child waits for a signal. Only the stop flag makes the parent send it.
TEST(InChild, AStopRequestReachesTheChild) {
  const base::StopFlag stop{true};
  sigset_t term, before;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, &before);  // the child inherits this and misses no signal
  const auto text = inChild(
      [&] {
        int got = 0;
        ::sigwait(&term, &got);
        return std::to_string(got);
      },
      stop);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(*text, std::to_string(SIGTERM));
}

}  // namespace
}  // namespace viaduct::measure::matrix
