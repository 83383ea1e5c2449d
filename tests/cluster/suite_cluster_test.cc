// `viaduct suite` between hosts with several links.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cluster/command.h"
#include "cluster/hosts.h"

namespace viaduct::testing {
namespace {

// Without coalescing a small transfer is cut for all rails; with it, for as many rails as pay off.
TEST(SuiteBetweenHosts, CoalescingTakesFewerRailsAndTheTableSaysSo) {
  const Desk desk(2, 4);
  if (!desk.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  const std::string file = ::testing::TempDir() + "suite_rails_" + std::to_string(::getpid());
  const std::string flags =
      "suite --backend tcp --rails rail0,rail1,rail2,rail3 --tests coalescing --sizes "
      "16K,32K,48K,1M "
      "--rounds 4 --duration 5ms --warmup 1ms --meet 10.77.0.1:7000 --rank ";
  const auto environment = [&](std::size_t host) {
    return "VIADUCT_SECRET=word VIADUCT_LISTEN=" + desk.listen(host);
  };
  Command first(desk[0], flags + "0 --json " + file, environment(0));
  Command second(desk[1], flags + "1", environment(1));
  ASSERT_EQ(second.finish(), 0) << second.text();
  ASSERT_EQ(first.finish(), 0) << first.text();
  std::ifstream in(file);
  const auto json = nlohmann::json::parse(in);
  std::filesystem::remove(file);
  std::map<std::pair<std::string, std::uint64_t>, std::string> rails;
  for (const auto& result : json.at("results"))
    rails[{result.at("test"), result.at("size")}] = result.at("rails");
  const std::map<std::pair<std::string, std::uint64_t>, std::string> expected{
      {{"baseline", 16384}, "4"},   {{"baseline", 32768}, "4"},    {{"baseline", 49152}, "4"},
      {{"baseline", 1 << 20}, "4"}, {{"coalescing", 16384}, "1"},  {{"coalescing", 32768}, "2"},
      {{"coalescing", 49152}, "3"}, {{"coalescing", 1 << 20}, "4"}};
  EXPECT_EQ(rails, expected) << json.at("results").dump(1) << first.text();
}

}  // namespace
}  // namespace viaduct::testing
