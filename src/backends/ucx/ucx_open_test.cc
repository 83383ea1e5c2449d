// Tests the effects of opening the backend on the program.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <string>

#include "backends/ucx/choose.h"
#include "backends/ucx/library.h"
#include "base/log.h"
#include "core/backend.h"
#include "support/temporary_folder.h"

namespace viaduct::ucx {
Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context);
namespace {

TEST(UcxOpen, TheErrorForAMisspeltRailListsTheDevices) {
  if (const auto chosen = choose({.backends = {"ucx"}}); chosen && chosen->can.rdma)
    GTEST_SKIP() << "skipped: over RDMA there is no lo";
  auto poller = std::move(*base::Poller::open());
  Settings settings;
  settings.backends = {"ucx"};
  settings.rails = {"lo0"};
  const auto opened = open({settings, *poller});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text().find("lo"), std::string::npos);
  EXPECT_EQ(opened.error().remedy, "did you mean lo?") << opened.error().text();
}

TEST(UcxOpen, RefusesToRunWithoutANetwork) {
  ::setenv("UCX_NET_DEVICES", "nonsense", 1);
  const auto chosen = choose({.backends = {"ucx"}});
  ::unsetenv("UCX_NET_DEVICES");
  ASSERT_FALSE(chosen) << chosen->description;
  const std::string text = chosen.error().text();
  EXPECT_NE(text.find("no network to use; there is: self/memory"), std::string::npos) << text;
  EXPECT_EQ(chosen.error().cause, "UCX_NET_DEVICES=nonsense leaves none");
}

// The warning is logged once in a process. Under ctest each test has its own process.
TEST(UcxOpen, WarnsOfTcpOnceHoweverManyAgentsOpenIt) {
  if (const auto chosen = choose({.backends = {"ucx"}}); chosen && chosen->can.rdma)
    GTEST_SKIP() << "skipped: this host has RDMA devices";
  base::setLogLevel(base::LogLevel::kWarning);
  auto poller = std::move(*base::Poller::open());
  const auto warned = [&] {
    ::testing::internal::CaptureStderr();
    const auto opened = open({{.backends = {"ucx"}}, *poller});
    const std::string lines = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(opened) << opened.error().text();
    return lines.find("every process that reaches its ports") != std::string::npos;
  };
  EXPECT_TRUE(warned());
  EXPECT_FALSE(warned());
}

// UCX reads its files once, when it is loaded. Under ctest each test has its own process.
TEST(UcxOpen, KeepsTheSettingsOfTheUsersFile) {
  for (const char* theirs : {"UCX_TLS", "UCX_NET_DEVICES", "UCX_CONFIG_DIR"})
    if (userHasSet(theirs)) GTEST_SKIP() << "skipped: " << theirs << " is set";
  const testing::TemporaryFolder folder;
  folder.write("/ucx.conf", "UCX_TLS=tcp\n");
  ::setenv("UCX_CONFIG_DIR", folder.path().c_str(), 1);
  ASSERT_TRUE(library());
  const std::string in_force = settingInForce(**library(), "UCX_TLS");
  ::unsetenv("UCX_CONFIG_DIR");
  if (in_force == "all") GTEST_SKIP() << "skipped: UCX has read its files before";
  EXPECT_EQ(in_force, "tcp");
  const auto chosen = choose({.backends = {"ucx"}});
  ASSERT_TRUE(chosen) << chosen.error().text();
  EXPECT_NE(chosen->description.find("UCX_TLS=tcp"), std::string::npos) << chosen->description;
  for (const auto& domain : chosen->domains)
    for (const Transport& one : static_cast<const Context&>(*domain).resources())
      EXPECT_EQ(one.name, "tcp");
}

// UCX installs handlers for SIGHUP and other signals when it is loaded.
TEST(UcxOpen, LeavesTheProgramsSignalsAlone) {
  ASSERT_TRUE(library());
  for (const char* theirs : {"UCX_HANDLE_ERRORS", "UCX_ERROR_SIGNALS", "UCX_DEBUG_SIGNO"})
    if (userHasSet(theirs)) GTEST_SKIP() << "skipped: " << theirs << " is set";
  struct sigaction now{};
  ASSERT_EQ(::sigaction(SIGHUP, nullptr, &now), 0);
  EXPECT_TRUE(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
}

TEST(UcxOpen, SaysWhyGpuMemoryIsStaged) {
  EXPECT_EQ(whyGpuIsStaged(UCS_BIT(UCS_MEMORY_TYPE_HOST)), "this UCX has no CUDA");
  EXPECT_EQ(whyGpuIsStaged(UCS_BIT(UCS_MEMORY_TYPE_HOST) | UCS_BIT(UCS_MEMORY_TYPE_CUDA)),
            "this backend registers host memory only");
}

TEST(UcxOpen, AContextKnowsTheKindsOfMemoryThatUcxReaches) {
  const auto chosen = choose({.backends = {"ucx"}});
  ASSERT_TRUE(chosen) << chosen.error().text();
  const auto& context = static_cast<const Context&>(*chosen->domains.front());
  EXPECT_NE(context.memoryTypes() & UCS_BIT(UCS_MEMORY_TYPE_HOST), 0U);
}

TEST(UcxOpen, OldVersionsOpenOnlyIfNamed) {
  EXPECT_FALSE(fitUnasked(1, 13));
  EXPECT_TRUE(fitUnasked(1, 14));
  EXPECT_TRUE(fitUnasked(2, 0));
}

TEST(UcxOpen, WithoutRdmaItOpensOnlyIfNamed) {
  auto poller = std::move(*base::Poller::open());
  const Settings settings;
  const auto opened = open({settings, *poller});
  if (opened) GTEST_SKIP() << "skipped: this host has RDMA devices";
  EXPECT_EQ(opened.error().code, Code::kUnsupported) << opened.error().text();
}

}  // namespace
}  // namespace viaduct::ucx
