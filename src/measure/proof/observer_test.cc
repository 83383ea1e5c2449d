#include "measure/proof/observer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/temporary_folder.h"

namespace viaduct::measure::proof {
namespace {

class ObserverTest : public ::testing::Test {
 protected:
  ObserverTest() {
    put("proc/sys/kernel/random/boot_id", "0f1e-77");
    put("sys/class/infiniband/efa0/ports/1/rate", "100 Gb/sec (4X EDR)");
    carried(100);
  }
  void put(const std::string& path, const std::string& text) const {
    root_.write("/" + path, text + "\n");
  }
  void carried(std::uint64_t bytes) {
    for (const char* name : {"tx_bytes", "rx_bytes"})
      put(std::string("sys/class/infiniband/efa0/ports/1/hw_counters/") + name,
          std::to_string(bytes));
  }
  testing::TemporaryFolder root_;
};

TEST_F(ObserverTest, CountsTheBytesBetweenBeforeAndAfter) {
  Observer observer({"efa0"}, root_.path());
  Observation own = observer.before();
  carried(5100);
  observer.pause(own);
  observer.claim(own, {{1, OpKind::kRead, {{{"ofi", "efa", "efa0", 5000, 2}}}}});
  const auto seen = decodeObservation(encode(own));
  ASSERT_TRUE(seen) << seen.error().text();
  EXPECT_EQ(seen->place.boot_id, "0f1e-77");
  EXPECT_EQ(seen->place.rails, std::vector<std::string>{"efa0"});
  ASSERT_EQ(seen->before.counters.size(), 1U);
  EXPECT_EQ(seen->after.counters[0].sent - seen->before.counters[0].sent, 5000U);
  EXPECT_GE(seen->before.at_ns - seen->quiet.at_ns,
            static_cast<std::uint64_t>(std::chrono::nanoseconds(kLookAround).count()));
  EXPECT_EQ(seen->claims.size(), 1U);
}

TEST_F(ObserverTest, OfARowThatTakesTurnsOnlyItsRoundsCount) {
  const Observer observer({}, root_.path());
  Observation seen = observer.before();
  carried(1000);
  observer.resume(seen);
  carried(1500);
  observer.pause(seen);
  carried(9000);
  observer.resume(seen);
  carried(9250);
  observer.pause(seen);
  EXPECT_EQ(seen.after.counters[0].sent - seen.before.counters[0].sent, 750U);
  EXPECT_EQ(seen.after.counters[0].sent - seen.quiet.counters[0].sent, 750U);
}

TEST_F(ObserverTest, OnlyTheSocketsOfItsRoundsExplainARow) {
  SocketStatistics sockets{.sockets = 1, .sent_bytes = 100, .busy = std::chrono::seconds(1)};
  const Observer observer({}, root_.path(), [&] {
    return std::vector<RailStatistics>{{.backend = "b", .rail = "quiet"},
                                       {.backend = "b", .rail = "r", .sockets = sockets}};
  });
  put("proc/self/task/1/schedstat", "1000000000 2000000000 1");
  Observation seen = observer.before();
  sockets.sent_bytes = 1000;
  put("proc/self/task/1/schedstat", "5000000000 5000000000 1");
  observer.resume(seen);
  sockets.sent_bytes = 1250;
  sockets.busy = std::chrono::seconds(3);
  put("proc/self/task/1/schedstat", "7000000000 5500000000 1");
  observer.pause(seen);
  const auto decoded = decodeObservation(encode(seen));
  ASSERT_TRUE(decoded) << decoded.error().text();
  EXPECT_EQ(*decoded, seen);
  ASSERT_EQ(seen.after.rails.size(), 1U);
  EXPECT_EQ(seen.after.rails[0].rail, "r");
  EXPECT_EQ(seen.after.rails[0].figures.sent_bytes - seen.before.rails[0].figures.sent_bytes, 250U);
  EXPECT_EQ(seen.after.rails[0].figures.busy - seen.before.rails[0].figures.busy,
            std::chrono::seconds(2));
  EXPECT_DOUBLE_EQ(seen.after.times.ran - seen.before.times.ran, 2);
  EXPECT_DOUBLE_EQ(seen.after.times.waited - seen.before.times.waited, 0.5);
}

TEST_F(ObserverTest, WaitsForCountersThatLag) {
  const Observer observer({}, root_.path());
  Observation seen = observer.before();
  observer.pause(seen);
  observer.claim(seen, {{1, OpKind::kWrite, {{{"ofi", "efa", "efa0", 5000, 2}}}}});
  EXPECT_GE(seen.after.at_ns - seen.before.at_ns,
            static_cast<std::uint64_t>(std::chrono::nanoseconds(kLag).count()));
}

TEST(ObserverHere, SeesLoopback) {
  const Observer observer({});
  const auto& devices = observer.place().devices;
  EXPECT_TRUE(std::any_of(devices.begin(), devices.end(), [](const host::Device& d) {
    return d.kind == host::DeviceKind::kLoopback;
  }));
  EXPECT_FALSE(observer.place().network.empty());
}

}  // namespace
}  // namespace viaduct::measure::proof
