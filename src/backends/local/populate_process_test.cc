// Tests that shared memory is populated ahead of use, by its owner and then by its peers, and that
// a peer takes few page faults for memory that was not.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>

#include "backends/local/own_memory_testing.h"
#include "backends/local/populator_testing.h"
#include "base/under_tsan.h"

namespace viaduct::local::testing {
namespace {

constexpr std::uint64_t kPool = std::uint64_t{12} << 20U;  // a size that nothing else here has

Settings populating(std::uint64_t bytes) {
  Settings all = settings();
  all.populate = bytes;
  return all;
}

// Owns an untouched pool until it is told to end.
bool ownPool(int socket, int pid, std::uint64_t populate) {
  Station station(socket, pid, populating(populate));
  const auto pool = *SharedMemory::allocate(kPool);
  station.pin(kThere, pool.segment());
  return station.hears("end");
}

class Populating : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kernelPopulates()) GTEST_SKIP() << "skipped: no MADV_POPULATE_READ in this kernel";
  }
  static std::uint64_t mappedBytes(int pid) { return mappedOfSize(pid, kPool).bytes; }
};

TEST_F(Populating, AnUntouchedPoolIsPopulatedAtBothEnds) {
  Child child([](int socket, int pid) { return ownPool(socket, pid, kPool); });
  Station station(child.socket(), child.pid(), populating(kPool));
  ASSERT_TRUE(station.ready());
  ASSERT_TRUE(station.run([&] { return station.files == 1; }));
  EXPECT_TRUE(comesTrue([&] { return mappedBytes(child.pid()) == kPool; }));
  EXPECT_TRUE(comesTrue([&] { return mappedBytes(::getpid()) == kPool; }));
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST_F(Populating, AnUntouchedPoolStaysAbsentWhereItIsOff) {
  Child child([](int socket, int pid) { return ownPool(socket, pid, 0); });
  Station station(child.socket(), child.pid(), populating(0));
  Memory memory(false);
  memory.mark();
  ASSERT_TRUE(station.backend().pin(kHere, memory.segment()));
  ASSERT_TRUE(station.ready());
  ASSERT_TRUE(station.reaches(kHere, kThere, "mapped"));
  ASSERT_EQ(mappedOfSize(child.pid(), kPool).count, 1);
  ASSERT_EQ(mappedOfSize(::getpid(), kPool).count, 1);
  EXPECT_FALSE(hasPopulator(child.pid()));
  EXPECT_FALSE(hasPopulator(::getpid()));
  EXPECT_EQ(mappedBytes(child.pid()), 0U);
  EXPECT_EQ(mappedBytes(::getpid()), 0U);
  ASSERT_FALSE(station.move(OpKind::kWrite, whole(memory.bytes(), station.pins[0].info.address)));
  EXPECT_EQ(mappedBytes(::getpid()), kBytes) << "only what the transfer touched";
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

long faults() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_minflt;
}

TEST_F(Populating, AWriteToResidentPagesTakesFewFaults) {
#ifdef VIADUCT_TSAN
  GTEST_SKIP() << "skipped: TSan's own pages for the written memory are faults, too";
#endif
  if (!kernelMapsAround()) GTEST_SKIP() << "skipped: this kernel maps one page a fault";
  Child child([](int socket, int pid) {
    Station station(socket, pid, populating(0));
    Memory memory(true);
    memory.fill(1);
    station.pin(kThere, memory.segment());
    return station.hears("end");
  });
  Station station(child.socket(), child.pid(), populating(0));
  Memory memory(false);
  memory.mark();
  ASSERT_TRUE(station.backend().pin(kHere, memory.segment()));
  ASSERT_TRUE(station.ready());
  ASSERT_TRUE(station.reaches(kHere, kThere, "mapped"));
  const long before = faults();
  ASSERT_FALSE(station.move(OpKind::kWrite, whole(memory.bytes(), station.pins[0].info.address,
                                                  std::uint64_t{1} << 20U)));
  EXPECT_LT(faults() - before, static_cast<long>(kBytes / pageBytes() / 4));
  station.say("end");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST_F(Populating, APoolMayBeReleasedAndUnmappedMeanwhile) {
  constexpr int kRounds = 100;
  Child child([](int socket, int pid) {
    Station station(socket, pid, populating(kPool));
    if (!station.ready()) return false;
    for (int round = 0; round < kRounds; ++round) {
      const auto pool = *SharedMemory::allocate(kPool);
      station.pin(kThere, pool.segment());
      const auto front = pool.bytes().first(std::size_t{1} << 20U);
      if (round % 3 != 0 && !comesTrue([&] { return mappedIn(front) != 0; })) return false;
      if (!station.unpin(kThere)) return false;
    }
    const auto last = *SharedMemory::allocate(kPool);
    station.pin(kThere, last.segment());
    station.say("last");
    return station.hears("look") && last.data()[0] == kMark && last.data()[kBytes - 1] == kMark;
  });
  Station station(child.socket(), child.pid(), populating(kPool));
  Memory memory(false);
  memory.mark();
  ASSERT_TRUE(station.backend().pin(kHere, memory.segment()));
  ASSERT_TRUE(station.hears("last"));
  EXPECT_EQ(station.files, kRounds + 1U);
  EXPECT_EQ(mappedOfSize(::getpid(), kPool).count, 1) << "a mapping outlived its file";
  EXPECT_TRUE(comesTrue([&] { return mappedBytes(::getpid()) == kPool; }))
      << "those before it still count";
  ASSERT_TRUE(station.reaches(kHere, kThere, "mapped"));
  ASSERT_FALSE(
      station.move(OpKind::kWrite, whole(memory.bytes(), station.pins.back().info.address)));
  station.say("look");
  EXPECT_EQ(child.exitCode(), 0);
}

TEST_F(Populating, APeerMayLeaveMeanwhile) {
  for (int round = 0; round < 10; ++round) {
    Child child([](int socket, int pid) { return ownPool(socket, pid, kPool); });
    {
      Station station(child.socket(), child.pid(), populating(kPool));
      ASSERT_TRUE(station.run([&] { return station.files == 1; }));
      if (round % 2 == 0)
        child.signal(SIGKILL);
      else
        station.say("end");
    }
    EXPECT_EQ(mappedOfSize(::getpid(), kPool).count, 0);
  }
}

}  // namespace
}  // namespace viaduct::local::testing
