// Failures of the backend cuda: memory that is freed or released, the driver's errors, cancelling.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/block_sums.h"
#include "cuda/driver_thread_testing.h"
#include "device/cuda_testing.h"
#include "device/driver_memory.h"
#include "device/fake_cuda_testing.h"

namespace viaduct::testing {
namespace {

using CudaFailure = CudaPair;

TEST_F(CudaFailure, PinsOfOtherMemoryAreRefused) {
  start();
  std::vector<std::byte> plain(4096);
  const auto memory = a_->deviceMemory();
  const auto host =
      memory->open(Segment::gpu(0, reinterpret_cast<std::uintptr_t>(plain.data()), plain.size()));
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().remedy, "pin it as host memory");
  const auto mine = memory->allocate(1, 4096);
  ASSERT_TRUE(mine) << mine.error().text();
  const auto wrong = memory->open(Segment::gpu(0, mine->address, 4096));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().detail, "it is memory of GPU 1");
  const auto long_one = memory->open(Segment::gpu(1, mine->address, std::uint64_t{1} << 40U));
  ASSERT_FALSE(long_one);
  EXPECT_EQ(long_one.error().code, Code::kInvalid);
  const auto absent = memory->allocate(7, 4096);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::kNotFound);
}

TEST_F(CudaFailure, WithoutADriverThePinNamesTheLibrary) {
  start({{"VIADUCT_CUDA_LIBRARY", "libnobody_has_this_cuda.so.1"}});
  const auto memory = a_->deviceMemory()->allocate(0, 4096);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, Code::kUnsupported);
  EXPECT_EQ(memory.error().operation, "load libnobody_has_this_cuda.so.1");
}

TEST_F(CudaFailure, FreedMemoryIsNotTouched) {
  start();
  const auto here = host(0, 0, 2 * kMiB);
  const auto allocated = [] {
    return *DriverMemory::make(kFakeCuda, cuda::MemoryClass::kLegacy, 2 * kMiB);
  };
  const auto memory = allocated();
  const auto opened = a_->deviceMemory()->open(Segment::gpu(0, memory->address(), 2 * kMiB));
  ASSERT_TRUE(opened) << opened.error().text();
  pair_->pin(1, 0, *opened);
  const auto ops = blocks(addressOf(here), opened->address, kMiB, 1);
  EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
  ASSERT_TRUE(memory->free());
  const std::uint64_t copied = fakeCudaBytesCopied();
  auto why = move(OpKind::kWrite, ops);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code, Code::kDenied) << why->text();
  const auto again = allocated();
  ASSERT_EQ(again->address(), opened->address);
  why = move(OpKind::kWrite, ops);
  ASSERT_TRUE(why);
  EXPECT_NE(why->detail.find("BUFFER_ID"), std::string::npos) << why->text();
  EXPECT_EQ(fakeCudaBytesCopied(), copied);
}

TEST_F(CudaFailure, AFailedCopyNamesCallErrorAndDevice) {
  const auto ops = startAndMoveOnce();
  fakeCudaFail("cuMemcpyAsync", 1, 1);
  const auto why = move(OpKind::kWrite, ops);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->operation, "cuMemcpyAsync");
  EXPECT_NE(why->detail.find("CUDA_ERROR_INVALID_VALUE (1)"), std::string::npos) << why->text();
  EXPECT_EQ(why->device.substr(0, 7), "GPU 0 (") << why->text();
  EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt) << "one failure ends one transfer";
}

TEST_F(CudaFailure, ABrokenContextEndsWhatIsInFlight) {
  const auto ops = startAndMoveOnce();
  fakeCudaFail("copy", 1, 700);
  auto why = move(OpKind::kWrite, ops);
  ASSERT_TRUE(why);
  EXPECT_NE(why->detail.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos) << why->text();
  why = move(OpKind::kWrite, ops);
  EXPECT_TRUE(why) << "the error stays";
}

TEST_F(CudaFailure, ABrokenContextRingsForTheCopyThatIsNotPolledFor) {
  const auto ops = startAndMoveOnce({{"VIADUCT_CUDA_POLL_FOR", "0"}});
  fakeCudaPause(true);
  ASSERT_EQ(post(OpKind::kWrite, ops), 1U);
  ASSERT_TRUE(pair_->run([&] { return !rail().busy(); }));
  fakeCudaFail("copy", 1, 700);
  fakeCudaPause(false);
  base::Poller::Events events;
  EXPECT_GT(poller_->block(events, poller_->now() + std::chrono::seconds(30)), 0);
  EXPECT_TRUE(pair_->run([&] { return ended() == 1; }));
  EXPECT_TRUE(failure());
}

TEST_F(CudaFailure, CancellingWaitsForWhatIsLaunched) {
  const auto ops = startAndMoveOnce();
  fakeCudaPause(true);
  ASSERT_EQ(post(OpKind::kWrite, ops, 7), 1U);
  rail().cancel(core::testing::sinkOf(7));
  for (int i = 0; i < 100; ++i) pair_->progress();
  EXPECT_EQ(ended(), 0U) << "the GPU may still touch the memory";
  fakeCudaPause(false);
  ASSERT_TRUE(pair_->run([&] { return ended() == 1; }));
  EXPECT_EQ(failure()->code, Code::kCancelled);
}

TEST_F(CudaFailure, UnpinningWaitsForCopiesOfBothEnds) {
  const auto ops = startAndMoveOnce();
  fakeCudaPause(true);
  ASSERT_EQ(post(OpKind::kWrite, ops), 1U);
  for (core::Backend* backend : {a_.get(), b_.get()}) {
    const Status left = backend->unpin(0);
    ASSERT_FALSE(left);
    EXPECT_EQ(left.error().code, Code::kBusy);
  }
  fakeCudaPause(false);
  ASSERT_TRUE(pair_->run([&] { return ended() == 1; }));
  EXPECT_TRUE(withdraw(*a_, 0));
  EXPECT_TRUE(withdraw(*b_, 0));
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 0), std::nullopt);
  const auto why = move(OpKind::kWrite, ops);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->detail.substr(0, 23), "the memory was released") << why->text();
}

TEST_F(CudaFailure, AKernelOfTheProgramThatHangsDoesNotHoldUpTheEnd) {
  startAndMoveOnce();
  const Segment other = device(1, 1, kMiB);
  hangProgram(other.address, other.address + 1);
  auto closed = std::async(std::launch::async, [this] {
    pair_.reset();
    auto settled = a_->close();
    a_.reset();
    b_.reset();
    return settled;
  });
  const std::uint64_t destroyed = fakeCudaCount("cuStreamDestroy");
  EXPECT_EQ(closed.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  const auto settled = closed.get();
  EXPECT_FALSE(settled()) << "the host memory is still registered";
  fakeCudaPause(false);
  cuda::testing::waitForRegistrar();
  cuda::testing::waitForEnds();
  EXPECT_TRUE(settled());
  EXPECT_GT(fakeCudaCount("cuStreamDestroy"), destroyed) << "of the other backend";
}

TEST_F(CudaFailure, UnpinningGivesUpHostMemoryThatTheDriverCannotUnregister) {
  settings_.grace = std::chrono::milliseconds(40);
  startAndMoveOnce();
  const Segment other = device(1, 1, kMiB);
  hangProgram(other.address, other.address + 1);
  const Status left = withdraw(*a_, 0);
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Code::kPeerLost) << left.error().text();
  const auto settled = link().settling();
  EXPECT_FALSE(settled());
  fakeCudaPause(false);
  cuda::testing::waitForRegistrar();
  EXPECT_TRUE(settled());
}

TEST_F(CudaFailure, AHungGpuIsReportedAndSettlesLater) {
  settings_.grace = std::chrono::milliseconds(40);
  const auto ops = startAndMoveOnce();
  fakeCudaPause(true);
  ASSERT_EQ(post(OpKind::kWrite, ops), 1U);
  const Status left = withdraw(*a_, 0);
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Code::kPeerLost);
  const auto settled = link().settling();
  link().close(pair_->done[0]);
  EXPECT_EQ(ended(), 1U) << "close() returns every op";
  EXPECT_FALSE(settled());
  fakeCudaPause(false);
  EXPECT_TRUE(pair_->run(settled));
  EXPECT_EQ(ended(), 1U);
}

TEST_F(CudaFailure, OpsOutsideTheirPinsAreDenied) {
  start();
  const auto here = host(0, 0, kMiB);
  const Segment there = device(1, 0, 2 * kMiB);
  std::vector<core::Op> ops = blocks(addressOf(here), there.address + 2 * kMiB - 4096, 8192, 1);
  const auto outside = move(OpKind::kWrite, ops);
  ASSERT_TRUE(outside);
  EXPECT_EQ(outside->code, Code::kDenied) << outside->text();
  Segment read_only = there;
  read_only.access = MemoryAccess::kReadOnly;
  pair_->pin(1, 1, read_only);
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 1), std::nullopt);
  EXPECT_EQ(link().reaches(OpKind::kRead, 0, 1), "direct");
  ops = blocks(addressOf(here), there.address, 8192, 1);
  ops[0].remote_pin = 1;
  const auto written = move(OpKind::kWrite, ops);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->code, Code::kDenied) << written->text();
}

TEST_F(CudaFailure, ABusyRailTakesLaterWhatItRefused) {
  start();
  const auto here = host(0, 0, kMiB);
  const Segment there = device(1, 0, 2 * kMiB);
  const auto ops = blocks(addressOf(here), there.address, 4096, 1);
  fakeCudaPause(true);
  std::uint64_t taken = 0;
  while (post(OpKind::kWrite, ops, taken + 1) == 1) ++taken;
  EXPECT_EQ(taken, 64U);
  fakeCudaPause(false);
  EXPECT_TRUE(pair_->run([&] { return ended() == taken; }));
  EXPECT_EQ(post(OpKind::kWrite, ops), 1U);
  EXPECT_TRUE(pair_->run([&] { return ended() == taken + 1; }));
}

// Sums of a GPU's memory.
class CudaSums : public CudaPair {
 protected:
  void startWithMemory(const Variables& variables = {}) {
    start(variables);
    memory_of_gpu_ = device(0, 0, 3 * kMiB);
    fillRandom(bytesOf(memory_of_gpu_), 5);
  }
  // Starts the sums of a piece that begins and ends inside a stripe.
  Result<std::unique_ptr<core::PendingSums>> begin() {
    const core::BlockPiece piece{memory_of_gpu_.address + 4, memory_of_gpu_.bytes - 5, 8};
    return a_->deviceMemory()->startSums(0, std::span(&piece, 1));
  }
  void expectRight() {
    auto begun = begin();
    ASSERT_TRUE(begun) << begun.error().text();
    const auto sums = (*begun)->wait();
    ASSERT_TRUE(sums) << sums.error().text();
    const auto bytes = bytesOf(memory_of_gpu_);
    EXPECT_EQ(*sums, std::vector{base::blockSums(8, bytes.subspan(4, bytes.size() - 5))});
  }

  Segment memory_of_gpu_;
};

TEST_F(CudaSums, WithoutAKernelAreThoseOfTheHost) {
  startWithMemory({{"VIADUCT_CUDA_KERNEL_BELOW", "0"}});
  fakeCudaFail("cuModuleLoadDataEx", 1, 218);
  const std::uint64_t by_kernels = fakeCudaBytesByKernels();
  expectRight();
  EXPECT_EQ(a_->deviceMemory()->sumsAtOnce(0).value(), kMiB);
  EXPECT_EQ(fakeCudaBytesByKernels(), by_kernels);
}

TEST_F(CudaSums, OfAKernelCopyNothing) {
  startWithMemory();
  const std::uint64_t copied = fakeCudaBytesCopied();
  expectRight();
  EXPECT_EQ(a_->deviceMemory()->sumsAtOnce(0).value(), 128 * kMiB);
  EXPECT_EQ(fakeCudaBytesCopied(), copied);
}

TEST_F(CudaSums, ThatNobodyWaitsForReadNothingLater) {
  startWithMemory();
  const std::uint64_t by_kernels = fakeCudaBytesByKernels();
  fakeCudaPause(true);
  auto begun = begin();
  ASSERT_TRUE(begun) << begun.error().text();
  std::thread goes_on([] { fakeCudaPause(false); });
  begun->reset();
  EXPECT_GT(fakeCudaBytesByKernels(), by_kernels) << "the launch has not ended";
  goes_on.join();
}

TEST_F(CudaSums, ReportTheCallThatFailed) {
  startWithMemory();
  expectRight();
  for (const char* call : {"cuLaunchKernel", "cuStreamSynchronize"}) {
    fakeCudaFail(call, 1, 1);
    auto begun = begin();
    const auto sums =
        begun ? (*begun)->wait() : Result<std::vector<base::BlockSums>>(begun.error());
    ASSERT_FALSE(sums) << call;
    EXPECT_EQ(sums.error().operation, call);
    expectRight();
  }
}

}  // namespace
}  // namespace viaduct::testing
