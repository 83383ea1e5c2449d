#include "measure/result/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace viaduct::measure {
namespace {

TEST(Text, FiguresHaveThreeSignificantDigits) {
  EXPECT_EQ(digits(std::nullopt), "-");
  EXPECT_EQ(digits(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(digits(0), "0");
  EXPECT_EQ(digits(0.00001234), "1.2e-05");
  EXPECT_EQ(digits(0.01234), "0.0123");
  EXPECT_EQ(digits(0.1234), "0.123");
  EXPECT_EQ(digits(1.234), "1.23");
  EXPECT_EQ(digits(12.34), "12.3");
  EXPECT_EQ(digits(123.4), "123");
  EXPECT_EQ(digits(12345.6), "12346");
}

TEST(Text, APathInWords) {
  Row row;
  EXPECT_EQ(pathWords(row), "");
  row.path = {{"tcp", "socket", "eth0", 1, 1, Proven::kYes}};
  EXPECT_EQ(pathWords(row), "tcp/socket on eth0, proven");
  row.path.push_back({"tcp", "socket", "eth1", 1, 1, Proven::kUnproven});
  EXPECT_EQ(pathWords(row), "tcp/socket on eth0+eth1, partly proven");
  row.path.push_back({"local", "cma", "copy", 1, 1, Proven::kNo});
  EXPECT_EQ(pathWords(row), "tcp/socket+local/cma on 3 devices, DISPROVEN");
  row.path = {{"local", "", "", 1, 1, Proven::kUnproven}};
  EXPECT_EQ(pathWords(row), "local, unproven");
  row.path = {{.backend = "cuda", .way = "direct", .device = "gpus", .stage = 1},
              {.backend = "tcp", .way = "socket", .device = "lo", .stage = 2},
              {.backend = "cuda", .way = "direct", .device = "gpus", .stage = 3}};
  EXPECT_EQ(pathWords(row),
            "cuda/direct -> host -> tcp/socket -> host -> cuda/direct on gpus+lo, unproven");
}

TEST(DeviceLines, NameEachDeviceAndTheirSum) {
  EXPECT_TRUE(deviceLines({}).empty());
  Row row{.devices = {{"initiator", 0, "GPU 0 (A)", 25}, {"initiator", 1, "GPU 1 (A)", 20}},
          .scaling = Scaling{2, 25, 0.9, 0.8}};
  using Lines = std::vector<std::string>;
  EXPECT_EQ(deviceLines(row),
            (Lines{"initiator 0, GPU 0 (A): 25.0 GB/s", "initiator 1, GPU 1 (A): 20.0 GB/s",
                   "scaling: 90 % of 2 x 25.0 GB/s, the rate of the first device alone; the "
                   "slowest device has 80 % of the fastest one's rate"}));
  row.scaling->alone_gb_per_s.reset();
  EXPECT_EQ(deviceLines(row).back(),
            "scaling: the slowest device has 80 % of the fastest one's rate");
}

}  // namespace
}  // namespace viaduct::measure
