// Log lines at `debug` about a transfer: its rails, its inline requests, and its batches.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <string>

#include "base/log.h"
#include "support/text.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

using testing::has;

// The log lines of one transfer from "me" to "other": `count` separate blocks of `bytes`.
std::string linesOf(Settings settings, std::uint64_t bytes, std::uint64_t count) {
  auto agent = Agent::open(settings);
  settings.name = "other";
  auto other = Agent::open(settings);
  if (!agent || !other) {
    ADD_FAILURE() << (agent ? other : agent).error().text();
    return {};
  }
  const auto from = agent->allocate(2 * bytes * count);
  const auto into = other->allocate(2 * bytes * count, {.label = "into"});
  auto peer = agent->importCard(other->exportCard());
  EXPECT_TRUE(from && into && peer && peer->ready(5s) && peer->waitPin("into", 5s));
  const auto blocks = [&](const Pin& pin) {
    return Selection{
        *Blocks::strided(
            {.base = pin.info().address, .stride = 2 * bytes, .bytes = bytes, .count = count}),
        {}};
  };
  base::setLogLevel(base::LogLevel::kDebug);
  ::testing::internal::CaptureStderr();
  auto transfer = agent->plan(OpKind::kWrite, *peer, blocks(*from), blocks(*into));
  EXPECT_TRUE(transfer && transfer->post() && transfer->wait(5s));
  base::setLogLevel(base::LogLevel::kWarning);
  return ::testing::internal::GetCapturedStderr();
}

TEST(DebugLines, NameTheRailsOfASmallTransfer) {
  const std::string lines = linesOf(
      {.name = "me", .backends = {"fake"}, .others = {{"VIADUCT_FAKE", "rails=4"}}}, 32 << 10, 1);
  EXPECT_TRUE(has(lines, "reducing rails from 4 to 2 for 32768 bytes")) << lines;
  EXPECT_TRUE(has(lines, "no rail gets less than 16 KiB")) << lines;
}

TEST(DebugLines, NameInlineOpsAndBatches) {
  const auto built_in = builtInBackends();
  if (std::find(built_in.begin(), built_in.end(), "ofi") == built_in.end())
    GTEST_SKIP() << "skipped: no libfabric at build time";
  Settings settings{.name = "me", .backends = {"ofi"}, .rails = {"127.0.0.1"}};
  settings.inject = settings.doorbell = Toggle::kOn;
  const std::string lines = linesOf(settings, 8, 64);
  EXPECT_TRUE(has(lines, "peer other: write: ofi/")) << lines;
  EXPECT_TRUE(has(lines, " batch")) << lines;
  EXPECT_TRUE(has(lines, " injected)")) << lines;
}

}  // namespace
}  // namespace viaduct
