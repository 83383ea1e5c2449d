#include "base/process_id.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace viaduct::base {
namespace {

TEST(ProcessIdTest, StaysTheSameInAProcessAndDiffersInAForkedChild) {
  const ProcessId here = processId();
  EXPECT_NE(here, ProcessId{});
  EXPECT_EQ(processId(), here);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(processId() == here ? 1 : 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace viaduct::base
