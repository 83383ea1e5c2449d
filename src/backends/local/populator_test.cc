#include "backends/local/populator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "backends/local/populator_testing.h"
#include "base/shared_memory.h"
#include "support/bytes.h"

namespace viaduct::local::testing {
namespace {

using base::SharedMemory;
using viaduct::testing::fillRandom;
using viaduct::testing::same;
using Pages = Populator::Pages;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 50U;

std::uint64_t plenty() { return kNoLimit; }

class PopulatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kernelPopulates()) GTEST_SKIP() << "skipped: no MADV_POPULATE_READ in this kernel";
  }
  // A second mapping of the file, as a peer has it.
  static SharedMemory mapped(const SharedMemory& memory) {
    const base::Fd file(::fcntl(memory.fd(), F_DUPFD_CLOEXEC, 0));
    return *SharedMemory::map(file, memory.size(), SharedMemory::Access::kReadWrite);
  }
  static bool idle(const Populator& populator) {
    return comesTrue([&] { return populator.idle(); });
  }
};

// A child group of this process's memory cgroup, in either version.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(std::uint64_t limit) {
    std::ifstream in("/proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {
      const bool second = line.starts_with("0::");
      const auto first = line.find(":memory:");
      if (!second && first == std::string::npos) continue;
      const std::string own = second ? line.substr(3) : line.substr(first + 8);
      const std::string folder = (second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + own +
                                 "/viaduct-test-" + std::to_string(::getpid());
      const std::string file = folder + (second ? "/memory.max" : "/memory.limit_in_bytes");
      std::error_code refused;
      if (!std::filesystem::create_directory(folder, refused)) continue;
      folder_ = folder;
      if (std::filesystem::exists(file, refused) && write(file, limit)) return;
      std::filesystem::remove(std::exchange(folder_, {}), refused);
    }
  }
  ~MemoryCgroup() {
    std::error_code busy;
    if (*this) std::filesystem::remove(folder_, busy);
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;
  explicit operator bool() const { return !folder_.empty(); }
  bool join() const { return write(folder_ + "/cgroup.procs", ::getpid()); }

 private:
  template <class Number>
  static bool write(const std::string& file, Number number) {
    std::ofstream out(file);
    out << number;
    out.close();
    return out.good();
  }
  std::string folder_;
};

TEST_F(PopulatorTest, AllocatesAndMapsAll) {
  const auto memory = *SharedMemory::allocate(20 * kMiB + pageBytes());
  Populator populator(kNoLimit, plenty);
  ASSERT_NE(populator.add(memory.bytes(), Pages::kAll), 0U);
  ASSERT_TRUE(idle(populator));
  EXPECT_EQ(residentIn(memory.bytes()), memory.size());
  EXPECT_EQ(mappedIn(memory.bytes()), memory.size());
}

TEST_F(PopulatorTest, MapsResidentPagesOfAPeersMemory) {
  const auto memory = *SharedMemory::allocate(8 * kMiB);
  for (std::uint64_t at = kMiB; at < 3 * kMiB; at += 2 * pageBytes())  // every second page
    memory.data()[at] = std::byte{1};
  std::memset(memory.data() + 4 * kMiB, 1, kMiB);
  const std::uint64_t resident = residentIn(memory.bytes());
  ASSERT_LE(resident, 8 * kMiB);
  const auto peers = mapped(memory);
  Populator populator(kNoLimit, plenty);
  populator.add(peers.bytes(), Pages::kResident);
  ASSERT_TRUE(idle(populator)) << "it gives up after a time without progress";
  EXPECT_EQ(mappedIn(peers.bytes()), resident);
  EXPECT_EQ(residentIn(memory.bytes()), resident) << "it allocated pages of the peer's file";
}

TEST_F(PopulatorTest, MapsPagesOfAPeersMemoryOnceTheyAreResident) {
  const auto memory = *SharedMemory::allocate(8 * kMiB);
  const auto peers = mapped(memory);
  Populator here(kNoLimit, plenty), there(kNoLimit, plenty);
  here.add(peers.bytes(), Pages::kResident);
  there.add(memory.bytes(), Pages::kAll);
  EXPECT_TRUE(comesTrue([&] { return mappedIn(peers.bytes()) == peers.size(); }));
}

TEST_F(PopulatorTest, KeepsToTheLimitForEachKindOfMemory) {
  const auto first = *SharedMemory::allocate(8 * kMiB), second = *SharedMemory::allocate(8 * kMiB);
  const auto peers = mapped(first);
  Populator populator(10 * kMiB, plenty);
  const auto id = populator.add(first.bytes(), Pages::kAll);
  populator.add(second.bytes(), Pages::kAll);
  populator.add(peers.bytes(), Pages::kResident);
  ASSERT_TRUE(idle(populator));
  EXPECT_EQ(residentIn(first.bytes()), 8 * kMiB);
  EXPECT_EQ(residentIn(second.bytes()), 2 * kMiB);
  EXPECT_EQ(mappedIn(peers.bytes()), 8 * kMiB);
  const auto third = *SharedMemory::allocate(8 * kMiB);
  EXPECT_EQ(populator.add(third.bytes(), Pages::kAll), 0U);
  populator.remove(id);
  EXPECT_NE(populator.add(third.bytes(), Pages::kAll), 0U);
  ASSERT_TRUE(idle(populator));
  EXPECT_EQ(residentIn(third.bytes()), 8 * kMiB);
}

TEST_F(PopulatorTest, PopulatesNothingWithALimitOfZero) {
  const auto memory = *SharedMemory::allocate(8 * kMiB);
  Populator populator(0, plenty);
  EXPECT_EQ(populator.add(memory.bytes(), Pages::kAll), 0U);
  EXPECT_EQ(populator.add(memory.bytes(), Pages::kResident), 0U);
  EXPECT_TRUE(populator.idle());
  EXPECT_FALSE(hasPopulator(::getpid()));
  EXPECT_EQ(residentIn(memory.bytes()), 0U);
}

TEST_F(PopulatorTest, PopulatesAQuarterOfTheFreeMemory) {
  const auto memory = *SharedMemory::allocate(64 * kMiB);
  Populator populator(kNoLimit, [] { return 100 * kMiB; });
  populator.add(memory.bytes(), Pages::kAll);
  ASSERT_TRUE(idle(populator));
  EXPECT_GT(residentIn(memory.bytes()), 0U);
  EXPECT_LE(residentIn(memory.bytes()), 25 * kMiB);
}

TEST_F(PopulatorTest, ReadsTheFreeMemoryAgain) {
  const auto memory = *SharedMemory::allocate(64 * kMiB);
  std::atomic<bool> first = true;
  Populator populator(kNoLimit, [&] { return first.exchange(false) ? kNoLimit : 0; });
  populator.add(memory.bytes(), Pages::kAll);
  ASSERT_TRUE(idle(populator));
  EXPECT_GT(residentIn(memory.bytes()), 0U);
  EXPECT_LE(residentIn(memory.bytes()), 16 * kMiB);
}

TEST_F(PopulatorTest, LeavesContentsAlone) {
  constexpr std::uint64_t kBytes = 64 * kMiB;
  const auto memory = *SharedMemory::allocate(kBytes);
  Populator populator(kNoLimit, plenty);
  populator.add(memory.bytes(), Pages::kAll);
  // Writes backwards, to meet the populating thread.
  for (std::uint64_t at = kBytes; at != 0; at -= kMiB)
    fillRandom(memory.bytes().subspan(at - kMiB, kMiB), at);
  ASSERT_TRUE(idle(populator));
  std::vector<std::byte> expected(kMiB);
  for (std::uint64_t at = kBytes; at != 0; at -= kMiB) {
    fillRandom(expected, at);
    ASSERT_TRUE(same(memory.bytes().subspan(at - kMiB, kMiB), expected)) << at;
  }
}

// After each removal, another mapping takes the same addresses.
TEST_F(PopulatorTest, LeavesRemovedMemoryAlone) {
  constexpr std::uint64_t kBytes = 4 * kMiB;
  Populator populator(kNoLimit, plenty);
  for (int round = 0; round < 300; ++round) {
    const auto pages = round % 2 == 0 ? Pages::kAll : Pages::kResident;
    auto memory = *SharedMemory::allocate(kBytes);
    std::memset(memory.data(), 1, kBytes / 2);
    auto peers = mapped(memory);
    const auto used = pages == Pages::kAll ? memory.bytes() : peers.bytes();
    const auto id = populator.add(used, pages);
    if (round % 3 != 0) comesTrue([&] { return mappedIn(used.first(kMiB)) != 0; });
    populator.remove(id);
    void* other = ::mmap(used.data(), kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ASSERT_EQ(other, used.data());
    std::this_thread::yield();
    ASSERT_EQ(mappedIn(used), 0U) << "round " << round;
  }
}

TEST_F(PopulatorTest, ForgetsMemoryThatIsNotThere) {
  const auto hole = *SharedMemory::allocate(16 * kMiB), memory = *SharedMemory::allocate(2 * kMiB);
  ::munmap(hole.data() + 4 * kMiB, 4 * kMiB);
  Populator populator(kNoLimit, plenty);
  populator.add(hole.bytes(), Pages::kAll);
  populator.add(hole.bytes(), Pages::kResident);
  populator.add(memory.bytes(), Pages::kAll);
  ASSERT_TRUE(idle(populator));
  EXPECT_EQ(residentIn(memory.bytes()), memory.size());
}

TEST_F(PopulatorTest, EndsInTheMiddle) {
  const auto memory = *SharedMemory::allocate(64 * kMiB);
  for (int round = 0; round < 20; ++round) {
    Populator populator(kNoLimit, plenty);
    populator.add(memory.bytes(), Pages::kAll);
    populator.add(memory.bytes(), Pages::kResident);
  }
}

// The kernel kills a process that exceeds the limit of its cgroup.
TEST_F(PopulatorTest, StaysWithinTheMemoryOfItsCgroup) {
  constexpr std::uint64_t kLimit = 96 * kMiB;
  MemoryCgroup group(kLimit);
  if (!group) GTEST_SKIP() << "skipped: no right to make a memory cgroup";
  const auto memory = *SharedMemory::allocate(4 * kLimit);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!group.join()) ::_exit(2);
    Populator populator(kNoLimit);
    populator.add(memory.bytes(), Pages::kAll);
    ::_exit(idle(populator) ? 0 : 3);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GT(residentIn(memory.bytes()), 0U);
  EXPECT_LE(residentIn(memory.bytes()), kLimit / 4);
}

}  // namespace
}  // namespace viaduct::local::testing
