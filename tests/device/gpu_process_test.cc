// Copies between memory of a GPU of two processes, over the fake driver and over NVIDIA's: legacy
// handles, descriptors of virtual memory, and the return of lent memory.
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cuda/memory.h"
#include "device/driver_under_test.h"
#include "process/process.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using cuda::MemoryClass;

constexpr const char* kBytes = "4194304";

// Memory of a GPU, and the way in which another process copies from or to it.
struct Lent {
  const char* name;
  const char* way;
  std::optional<MemoryClass> kind;  // none: Agent::allocate makes the memory
  bool virtual_memory = true;       // whether the driver has it
  friend void PrintTo(const Lent& lent, std::ostream* out) { *out << lent.name; }
};
constexpr Lent kLent[] = {
    {"legacy", "cuda/ipc", MemoryClass::kLegacy},
    {"expandable", "cuda/vmm", MemoryClass::kShareable},
    {"allocated", "cuda/vmm", {}},
};
// A driver without virtual memory, which only the fake one can be.
constexpr Lent kLentByAnOldDriver = {"old_driver", "cuda/ipc", {}, false};

std::vector<Lent> everyLent() {
  std::vector<Lent> all(std::begin(kLent), std::end(kLent));
  if (kDriverIsFake) all.push_back(kLentByAnOldDriver);
  return all;
}

class GpuProcess : public ::testing::TestWithParam<Lent> {
 protected:
  void SetUp() override {
    VIADUCT_SKIP_WITHOUT_A_GPU();
    a_ = start("a");
    b_ = start("b");
    connect();
  }
  // Starts a process with host memory and memory of the GPU.
  static std::unique_ptr<PeerProcess> start(const std::string& name) {
    std::vector<std::string> wrapper;
    if (!GetParam().virtual_memory) wrapper = {"env", "FAKE_CUDA_VMM=0"};
    auto process = std::make_unique<PeerProcess>(
        "name=" + name +
            " backends=cuda,local VIADUCT_CUDA_KERNEL_BELOW=32KiB VIADUCT_CUDA_LIBRARY=" +
            kDriverUnderTest,
        0, wrapper);
    allocate(*process, "gpu", kBytes);
    process->must(std::string("memory host ") + kBytes);
    return process;
  }
  void connect() {
    ASSERT_EQ(a_->must("import " + b_->card()), "b");
    a_->must("ready b 20000");
  }
  static void allocate(PeerProcess& by, const std::string& label, const std::string& bytes) {
    if (const auto kind = GetParam().kind)
      by.must("drivergpu " + label + " " + bytes + " " + std::to_string(static_cast<int>(*kind)));
    else
      by.must("gpu " + label + " " + bytes + " 0");
  }
  // Moves all of a memory, in blocks that do not merge. Returns the answer: the path, or the error.
  static std::string move(PeerProcess& by, const std::string& kind, const std::string& peer,
                          const std::string& local, const std::string& remote,
                          const std::string& block = "4096",
                          const std::string& require = "backend:cuda") {
    const std::string planned = by.ask("plan t " + kind + " " + peer + " " + local + " " + remote +
                                       " " + block + " " + require);
    if (!planned.starts_with("ok")) return planned;
    by.must("post t");
    return by.ask("wait t 20000");
  }
  static void fill(PeerProcess& one, int byte) {
    one.must("fill host " + std::to_string(byte));
    const std::string moved = move(one, "write", "self", "host", "gpu");
    ASSERT_TRUE(moved.starts_with("ok")) << moved;
  }
  static void expectAll(PeerProcess& one, int byte) {
    const std::string moved = move(one, "read", "self", "host", "gpu");
    ASSERT_TRUE(moved.starts_with("ok")) << moved;
    EXPECT_EQ(one.number("differ host " + std::to_string(byte)), 0);
  }
  static void waitUntilSettled(PeerProcess& one, const std::string& peer) {
    std::string settled;
    for (const auto end = Clock::now() + 20s; settled != "1" && Clock::now() < end;)
      settled = one.must("settled " + peer);
    EXPECT_EQ(settled, "1");
  }
  static void expectWay(const std::string& moved) {
    EXPECT_NE(moved.find(GetParam().way), std::string::npos) << moved;
  }
  // A writes its GPU's memory to the memory of B, and so maps B's memory.
  void borrow(const std::string& remote = "gpu") {
    fill(*a_, 7);
    expectWay(move(*a_, "write", "b", "gpu", remote));
  }

  std::unique_ptr<PeerProcess> a_, b_;
};

TEST_P(GpuProcess, GpusCopyToEachOtherBothWays) {
  borrow();
  expectAll(*b_, 7);
  fill(*b_, 9);
  expectWay(move(*a_, "read", "b", "gpu", "gpu", "1048576"));
  expectAll(*a_, 9);
}

TEST_P(GpuProcess, HostMemoryCopiesWithThePeersGpu) {
  a_->must("fill host 5");
  expectWay(move(*a_, "write", "b", "host", "gpu"));
  expectAll(*b_, 5);
}

// The driver takes small allocations of cuMemAlloc from one larger block.
TEST_P(GpuProcess, SmallMemoriesAreMappedEachByItself) {
  a_->must("memory small 65536");
  b_->must("memory back 65536");
  for (const std::string number : {"1", "2", "3"}) {
    const std::string label = "small" + number;
    allocate(*b_, label, "65536");
    a_->must("fill small " + number);
    expectWay(move(*a_, "write", "b", "small", label));
  }
  for (const std::string number : {"1", "2", "3"}) {
    const auto moved = move(*b_, "read", "self", "back", "small" + number);
    ASSERT_TRUE(moved.starts_with("ok")) << moved;
    EXPECT_EQ(b_->number("differ back " + number), 0) << number;
  }
}

TEST_P(GpuProcess, AReleaseTakesTheMemoryBack) {
  borrow();
  b_->must("release gpu");
  const std::string posted = a_->ask("post t");
  EXPECT_FALSE(posted.starts_with("ok") && a_->ask("wait t 20000").starts_with("ok"));
  allocate(*b_, "again", kBytes);
  borrow("again");
}

TEST_P(GpuProcess, AReleaseEndsWhenThePeerHasDied) {
  borrow();
  a_->process().kill();
  b_->must("release gpu");
}

TEST_P(GpuProcess, AReleaseEndsWhenThePeerHasClosed) {
  borrow();
  a_->must("close");
  b_->must("release gpu");
}

TEST_P(GpuProcess, AStoppedPeerIsReportedAndSettlesWhenItIsDead) {
  borrow();
  a_->process().stop();
  const std::string left = b_->ask("release gpu");
  EXPECT_TRUE(left.starts_with("error peer lost")) << left;
  EXPECT_NE(left.find("a peer still maps the memory"), std::string::npos) << left;
  EXPECT_EQ(b_->must("settled a"), "0");
  a_->process().kill();
  waitUntilSettled(*b_, "a");
}

// The owner dies while its peer copies. Copies of the peer's own memory and of a new owner's work.
TEST_P(GpuProcess, AKilledOwnerFailsOnlyTheCopiesOfItsMemory) {
  borrow();
  a_->must("storm t");
  b_->process().kill();
  const std::string failed = a_->must("calm t 20000");
  EXPECT_TRUE(failed.starts_with("peer lost")) << failed;
  waitUntilSettled(*a_, "b");
  fill(*a_, 3);
  expectAll(*a_, 3);
  b_ = start("b");
  connect();
  expectWay(move(*a_, "write", "b", "gpu", "gpu"));
  expectAll(*b_, 3);
  a_->must("release gpu");
}

TEST_P(GpuProcess, MemoryThatItsOwnerHasFreedIsNotMapped) {
  if (!GetParam().kind) GTEST_SKIP() << "Viaduct frees its own memory after its pin";
  b_->must("drivergone gpu");
  const std::string moved = move(*a_, "write", "b", "gpu", "gpu");
  EXPECT_NE(moved.find("was freed since it was pinned"), std::string::npos) << moved;
  b_->must("release gpu");
  allocate(*b_, "again", kBytes);
  borrow("again");
}

INSTANTIATE_TEST_SUITE_P(Memory, GpuProcess, ::testing::ValuesIn(everyLent()),
                         [](const auto& one) { return one.param.name; });

// Memory that other processes cannot map.
constexpr Lent kUnmapped[] = {
    {"private_chunks", "local", MemoryClass::kPrivate},
    {"pool", "local", MemoryClass::kPool},
};

class StagedGpuProcess : public GpuProcess {};

TEST_P(StagedGpuProcess, TheMemoryGoesThroughARingOfThePeersGpu) {
  fill(*a_, 7);
  const std::string written = move(*a_, "write", "b", "gpu", "gpu");
  EXPECT_NE(written.find("cuda/vmm"), std::string::npos) << written;
  EXPECT_NE(written.find(" -> GPU -> cuda/direct"), std::string::npos) << written;
  expectAll(*b_, 7);
  fill(*b_, 8);
  const std::string read = move(*a_, "read", "b", "gpu", "gpu");
  EXPECT_NE(read.find("cuda/direct"), std::string::npos) << read;
  EXPECT_NE(read.find(" -> GPU -> cuda/vmm"), std::string::npos) << read;
  expectAll(*a_, 8);
}

TEST_P(StagedGpuProcess, TheMemoryIsStagedAndTheLinkSaysWhy) {
  fill(*a_, 7);
  expectWay(move(*a_, "write", "b", "gpu", "gpu", "4096", "backend:local"));
  expectAll(*b_, 7);
  const std::string refused = move(*a_, "write", "b", "gpu", "gpu", "4096", "gpu-direct");
  EXPECT_TRUE(refused.starts_with("error unsupported")) << refused;
  const std::string why = "not \"gpu\": other processes cannot map " +
                          std::string(cuda::memoryClassName(*GetParam().kind));
  const std::string ways = a_->must("ways b");
  EXPECT_NE(ways.find(why), std::string::npos) << ways;
}

INSTANTIATE_TEST_SUITE_P(Memory, StagedGpuProcess, ::testing::ValuesIn(kUnmapped),
                         [](const auto& one) { return one.param.name; });

TEST(ManagedGpuMemory, IsNotPinned) {
  VIADUCT_SKIP_WITHOUT_A_GPU();
  PeerProcess one("name=a backends=cuda,local VIADUCT_CUDA_LIBRARY=" + kDriverUnderTest);
  const std::string pinned = one.ask("drivergpu gpu " + std::string(kBytes) + " " +
                                     std::to_string(static_cast<int>(MemoryClass::kManaged)));
  EXPECT_NE(pinned.find("managed memory moves"), std::string::npos) << pinned;
}

}  // namespace
}  // namespace viaduct::testing
