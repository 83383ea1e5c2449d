// Tests the warning that opening the backend logs.
#include <gtest/gtest.h>

#include "backends/ofi/library.h"
#include "base/log.h"
#include "core/backend.h"

namespace viaduct::ofi {
Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context);
namespace {

// The warning is logged once in a process. Under ctest each test has its own process.
TEST(OfiOpen, WarnsOfTcpOnceHoweverManyAgentsOpenIt) {
  if (const auto there = library(); !there) GTEST_SKIP() << there.error().text();
  base::setLogLevel(base::LogLevel::kWarning);
  auto poller = std::move(*base::Poller::open());
  const Settings settings{
      .backends = {"ofi"}, .rails = {"127.0.0.1"}, .ofi_provider = "tcp;ofi_rxm"};
  const auto warned = [&] {
    ::testing::internal::CaptureStderr();
    const auto opened = open({settings, *poller});
    const std::string lines = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(opened) << opened.error().text();
    return lines.find("a process that reaches its ports") != std::string::npos;
  };
  EXPECT_TRUE(warned());
  EXPECT_FALSE(warned());
}

}  // namespace
}  // namespace viaduct::ofi
