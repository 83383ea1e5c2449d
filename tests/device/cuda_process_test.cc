// Copies between memory of GPUs of two processes, over the fake driver: legacy handles, descriptors
// of virtual memory, and the way back of what was lent.
#include <gtest/gtest.h>

#include <string>

#include "device/fake_cuda.h"
#include "process/process.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr const char* kBytes = "4194304";

// The parameter: whether the GPUs have virtual memory. Without, Viaduct allocates by cuMemAlloc.
class CudaProcess : public ::testing::TestWithParam<bool> {
 protected:
  static std::unique_ptr<PeerProcess> start(const std::string& name) {
    const std::string settings =
        "name=" + name +
        " backends=cuda,local VIADUCT_CUDA_KERNEL_BELOW=32KiB VIADUCT_CUDA_LIBRARY=";
    return std::make_unique<PeerProcess>(
        settings + kFakeCuda, 0,
        std::vector<std::string>{"env", std::string("FAKE_CUDA_VMM=") + (GetParam() ? "1" : "0")});
  }
  // Both ends have memory of a GPU and host memory.
  void SetUp() override {
    a_ = start("a");
    b_ = start("b");
    ASSERT_EQ(a_->must("import " + b_->card()), "b");
    a_->must("ready b 20000");
    for (PeerProcess* one : {a_.get(), b_.get()}) {
      one->must(std::string("gpu gpu ") + kBytes + " 0");
      one->must(std::string("memory host ") + kBytes);
    }
  }
  static const char* way() { return GetParam() ? "cuda/vmm" : "cuda/ipc"; }
  // Moves all of a memory, in blocks that do not merge. Returns the answer: the path, or the error.
  static std::string move(PeerProcess& by, const std::string& kind, const std::string& peer,
                          const std::string& local, const std::string& remote,
                          const std::string& block = "4096") {
    const std::string planned = by.ask("plan t " + kind + " " + peer + " " + local + " " + remote +
                                       " " + block + " backend:cuda");
    if (!planned.starts_with("ok")) return planned;
    by.must("post t");
    return by.ask("wait t 20000");
  }
  static void fill(PeerProcess& one, int byte) {
    one.must("fill host " + std::to_string(byte));
    ASSERT_TRUE(move(one, "write", "self", "host", "gpu").starts_with("ok"));
  }
  static void expectAll(PeerProcess& one, int byte) {
    ASSERT_TRUE(move(one, "read", "self", "host", "gpu").starts_with("ok"));
    EXPECT_EQ(one.number("differ host " + std::to_string(byte)), 0);
  }
  // A writes its GPU's memory to B's, and so maps it.
  void borrow() {
    fill(*a_, 7);
    const std::string moved = move(*a_, "write", "b", "gpu", "gpu");
    ASSERT_NE(moved.find(way()), std::string::npos) << moved;
  }

  std::unique_ptr<PeerProcess> a_, b_;
};

TEST_P(CudaProcess, GpusCopyToEachOtherBothWays) {
  borrow();
  expectAll(*b_, 7);
  fill(*b_, 9);
  const std::string moved = move(*a_, "read", "b", "gpu", "gpu", "1048576");
  ASSERT_NE(moved.find(way()), std::string::npos) << moved;
  expectAll(*a_, 9);
}

TEST_P(CudaProcess, HostMemoryCopiesWithThePeersGpu) {
  a_->must("fill host 5");
  const std::string moved = move(*a_, "write", "b", "host", "gpu");
  ASSERT_NE(moved.find(way()), std::string::npos) << moved;
  expectAll(*b_, 5);
}

TEST_P(CudaProcess, AReleaseTakesTheMemoryBack) {
  borrow();
  b_->must("release gpu");
  const std::string posted = a_->ask("post t");
  EXPECT_FALSE(posted.starts_with("ok") && a_->ask("wait t 20000").starts_with("ok"));
  b_->must(std::string("gpu again ") + kBytes + " 0");
  const std::string moved = move(*a_, "write", "b", "gpu", "again");
  EXPECT_NE(moved.find(way()), std::string::npos) << moved;
}

TEST_P(CudaProcess, AReleaseEndsWhenThePeerHasDied) {
  borrow();
  a_->process().kill();
  b_->must("release gpu");
}

TEST_P(CudaProcess, AReleaseEndsWhenThePeerHasClosed) {
  borrow();
  a_->must("close");
  b_->must("release gpu");
}

TEST_P(CudaProcess, AStoppedPeerIsReportedAndSettlesWhenItIsDead) {
  borrow();
  a_->process().stop();
  const std::string left = b_->ask("release gpu");
  EXPECT_TRUE(left.starts_with("error peer lost")) << left;
  EXPECT_NE(left.find("a peer still maps the memory"), std::string::npos) << left;
  EXPECT_EQ(b_->must("settled a"), "0");
  a_->process().kill();
  std::string settled;
  for (const auto end = Clock::now() + 20s; settled != "1" && Clock::now() < end;)
    settled = b_->must("settled a");
  EXPECT_EQ(settled, "1");
}

INSTANTIATE_TEST_SUITE_P(Memory, CudaProcess, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "virtual" : "legacy"; });

}  // namespace
}  // namespace viaduct::testing
