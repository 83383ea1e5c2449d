// Copies of the backend cuda between memory of GPUs and host memory of one process.
#include <gtest/gtest.h>

#include "device/cuda_testing.h"

namespace viaduct::testing {
namespace {

using CudaMove = CudaPair;

TEST_F(CudaMove, NothingIsLoadedForHostMemory) {
  start();
  host(0, 0, 4096);
  host(1, 0, 4096);
  pair_->progress();
  EXPECT_TRUE(pair_->ready());
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 0), std::nullopt);
  EXPECT_EQ(::dlopen(kFakeCuda, RTLD_NOW | RTLD_NOLOAD), nullptr);
  EXPECT_TRUE(a_->description().empty());
  device(0, 1, 4096);
  EXPECT_EQ(fakeCudaCount("cuInit"), 1U);
  EXPECT_EQ(a_->description().substr(0, 7), "GPU 0 (") << a_->description();
}

TEST_F(CudaMove, LargeCopiesGoBothWaysByTheEngines) {
  start();
  const auto here = host(0, 0, 6 * kMiB);
  const auto back = host(0, 1, 6 * kMiB);
  const Segment there = device(1, 0, 12 * kMiB);
  fillRandom(here, 1);
  const auto write = blocks(addressOf(here), there.address, kMiB, 6);
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 0), "direct");
  EXPECT_EQ(move(OpKind::kWrite, write), std::nullopt);
  for (const core::Op& op : write)
    EXPECT_TRUE(same(here.subspan(op.local - addressOf(here), op.bytes),
                     bytesOf(there).subspan(op.remote - there.address, op.bytes)));
  auto read = blocks(addressOf(back), there.address, kMiB, 6);
  for (core::Op& op : read) op.local_pin = 1;
  EXPECT_EQ(move(OpKind::kRead, read), std::nullopt);
  EXPECT_TRUE(same(here, back));
  EXPECT_EQ(fakeCudaCount("cuLaunchKernel"), 0U);
  EXPECT_EQ(fakeCudaBytesPageable(), 0U);
}

// The driver registers whole pages, and each page once.
TEST_F(CudaMove, HostMemoryMaySharePages) {
  constexpr std::uint64_t kPage = 4096, kPart = kPage;
  start({{"VIADUCT_CUDA_KERNEL_BELOW", "0"}});
  auto& memory = memory_.emplace_back(5 * kPage);
  const std::uint64_t first = (addressOf(memory) / kPage + 1) * kPage + 100;
  for (std::uint32_t slot = 0; slot < 2; ++slot)
    pair_->pin(0, slot,
               Segment::host(reinterpret_cast<void*>(first + slot * kPart), kPart));  // NOLINT
  const Segment there = device(1, 0, 2 * kPart);
  fillRandom(memory, 5);
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    const core::Op op{.local = first + slot * kPart,
                      .remote = there.address + slot * kPart,
                      .bytes = kPart,
                      .local_pin = slot};
    EXPECT_EQ(move(OpKind::kWrite, {op}), std::nullopt) << slot;
  }
  EXPECT_TRUE(same(bytesOf(there).first(2 * kPart),
                   std::span(memory).subspan(first - addressOf(memory), 2 * kPart)));
}

TEST_F(CudaMove, SmallBlocksGoByOneKernelForABatch) {
  start();
  const auto here = host(0, 0, kMiB);
  const Segment there = device(1, 0, 2 * kMiB);
  fillRandom(here, 2);
  const auto ops = blocks(addressOf(here), there.address, 4096, 256);
  EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
  for (const core::Op& op : ops)
    ASSERT_TRUE(same(here.subspan(op.local - addressOf(here), op.bytes),
                     bytesOf(there).subspan(op.remote - there.address, op.bytes)));
  EXPECT_EQ(fakeCudaCount("cuLaunchKernel"), 1U);
  EXPECT_EQ(fakeCudaBytesByKernels(), kMiB);
  EXPECT_EQ(std::get<core::Moved>(done()[0]).by_kernel, 256U);
  EXPECT_EQ(move(OpKind::kWrite, blocks(addressOf(here), there.address, 65536, 16)), std::nullopt);
  EXPECT_EQ(std::get<core::Moved>(done()[0]).by_kernel, 0U) << "copied by the copy engine";
}

TEST_F(CudaMove, BetweenGpusBytesStayOutOfHostMemory) {
  start();
  const Segment near = device(0, 0, kMiB, 0);
  const Segment same_gpu = device(1, 0, 2 * kMiB, 0);
  const Segment other_gpu = device(1, 1, 2 * kMiB, 1);
  fillRandom(bytesOf(near), 3);
  for (const Segment* there : {&same_gpu, &other_gpu}) {
    auto ops = blocks(near.address, there->address, 4096, 256);
    for (core::Op& op : ops) op.remote_pin = there == &same_gpu ? 0 : 1;
    EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
    for (const core::Op& op : ops)
      ASSERT_TRUE(same(bytesOf(near).subspan(op.local - near.address, op.bytes),
                       bytesOf(*there).subspan(op.remote - there->address, op.bytes)));
  }
  EXPECT_EQ(fakeCudaBytesByKernels(), 2 * kMiB);
}

TEST_F(CudaMove, MoreOpsThanABatchHasArriveOnce) {
  start();
  const auto here = host(0, 0, 8 * kMiB);
  const Segment there = device(1, 0, 16 * kMiB);
  fillRandom(here, 4);
  const auto ops = blocks(addressOf(here), there.address, 512, 16384);
  EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
  const auto& moved = std::get<core::Moved>(done()[0]);
  EXPECT_EQ(moved.bytes, 8 * kMiB);
  EXPECT_EQ(moved.batches, 7U);  // the first batches are smaller
  EXPECT_EQ(moved.by_kernel, 16384U);
  for (const core::Op& op : ops)
    ASSERT_TRUE(same(here.subspan(op.local - addressOf(here), op.bytes),
                     bytesOf(there).subspan(op.remote - there.address, op.bytes)));
}

TEST_F(CudaMove, TheFirstCopyOfAPinRegistersIt) {
  start();
  const auto here = host(0, 0, kMiB);
  const Segment there = device(1, 0, 2 * kMiB);
  EXPECT_EQ(fakeCudaCount("cuMemHostRegister"), 0U);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(move(OpKind::kWrite, blocks(addressOf(here), there.address, kMiB / 4, 4)),
              std::nullopt);
  EXPECT_EQ(fakeCudaCount("cuMemHostRegister"), 1U);
  EXPECT_TRUE(withdraw(*a_, 0));
  EXPECT_EQ(fakeCudaCount("cuMemHostUnregister"), 1U);
}

TEST_F(CudaMove, PinsOfTheSameHostMemoryShareItsRegistration) {
  start();
  const auto here = host(0, 0, kMiB);
  pair_->pin(0, 1, Segment::host(here.data(), kMiB / 2));
  const Segment there = device(1, 0, 2 * kMiB);
  auto ops = blocks(addressOf(here), there.address, kMiB / 4, 2);
  EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
  for (core::Op& op : ops) op.local_pin = 1;
  EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
  EXPECT_TRUE(withdraw(*a_, 0));
  EXPECT_EQ(fakeCudaCount("cuMemHostUnregister"), 0U);
  EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
  EXPECT_TRUE(withdraw(*a_, 1));
  EXPECT_EQ(fakeCudaCount("cuMemHostRegister"), 1U);
  EXPECT_EQ(fakeCudaCount("cuMemHostUnregister"), 1U);
}

// The program may end its own registration at any time, and a kernel would then break the context.
TEST_F(CudaMove, NoKernelReadsHostMemoryThatTheProgramRegistered) {
  start();
  const auto here = host(0, 0, kMiB);
  const Segment there = device(1, 0, 2 * kMiB);
  const auto current =
      cuda::Current::of(*std::static_pointer_cast<const cuda::DeviceBuffer>(there.opened)->context);
  ASSERT_TRUE(current);
  const auto enroll =
      fakeCudaFunction<cuda::CUresult(void*, std::size_t, unsigned)>("cuMemHostRegister_v2");
  ASSERT_EQ(enroll(here.data(), here.size(), 0), cuda::CUresult::kSuccess);
  fillRandom(here, 8);
  EXPECT_EQ(move(OpKind::kWrite, blocks(addressOf(here), there.address, 4096, 256)), std::nullopt);
  EXPECT_TRUE(same(here.first(4096), bytesOf(there).first(4096)));
  EXPECT_EQ(fakeCudaCount("cuMemHostRegister"), 1U);
  EXPECT_EQ(fakeCudaBytesPageable(), 0U);
  EXPECT_EQ(fakeCudaBytesByKernels(), 0U);
}

TEST_F(CudaMove, HostMemoryBeyondTheLimitIsCopiedAsPageable) {
  start({{"VIADUCT_CUDA_REGISTER", "0"}});
  const auto here = host(0, 0, 4 * kMiB);
  const Segment there = device(1, 0, 8 * kMiB);
  fillRandom(here, 5);
  EXPECT_EQ(move(OpKind::kWrite, blocks(addressOf(here), there.address, 4 * kMiB, 1)),
            std::nullopt);
  EXPECT_TRUE(same(here, bytesOf(there).first(4 * kMiB)));
  EXPECT_EQ(fakeCudaBytesPageable(), 4 * kMiB);
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 0), "pageable");
}

TEST_F(CudaMove, CalibrationFindsASizeForEachDirection) {
  start({{"VIADUCT_CUDA_KERNEL_BELOW", "auto"}});
  device(0, 0, 4096);
  EXPECT_GT(fakeCudaCount("cuLaunchKernel"), 0U);
  EXPECT_NE(a_->description().find("kernel below"), std::string::npos) << a_->description();
  const std::uint64_t launched = fakeCudaCount("cuLaunchKernel");
  device(1, 0, 4096);
  EXPECT_EQ(fakeCudaCount("cuLaunchKernel"), launched) << "measured twice";
}

TEST_F(CudaMove, WithoutTheKernelTheEnginesCopyAll) {
  start({{"VIADUCT_CUDA_KERNEL_BELOW", "0"}});
  const auto here = host(0, 0, kMiB);
  const Segment there = device(1, 0, 2 * kMiB);
  fillRandom(here, 6);
  const auto ops = blocks(addressOf(here), there.address, 4096, 256);
  EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
  EXPECT_EQ(fakeCudaCount("cuModuleLoadDataEx"), 0U);
  EXPECT_TRUE(same(here.first(4096), bytesOf(there).first(4096)));
}

TEST_F(CudaMove, ALongCopyRingsInThePlaceOfPolling) {
  const auto ops = startAndMoveOnce({{"VIADUCT_CUDA_POLL_FOR", "0"}});
  fakeCudaPause(true);
  ASSERT_EQ(post(OpKind::kWrite, ops), 1U);
  ASSERT_TRUE(pair_->run([&] { return !rail().busy(); })) << "it is polled for";
  EXPECT_EQ(ended(), 0U);
  fakeCudaPause(false);
  const auto until = Clock::now() + std::chrono::seconds(30);
  base::Poller::Events events;
  while (!rail().busy() && Clock::now() < until)
    poller_->handle(events, poller_->block(events, until), poller_->now());
  EXPECT_TRUE(pair_->run([&] { return ended() == 1; }));
}

TEST_F(CudaMove, NothingIsLeftOfTheDriverAtTheEnd) {
  start();
  const auto here = host(0, 0, kMiB);
  {
    const Segment there = device(1, 0, 2 * kMiB);
    EXPECT_EQ(move(OpKind::kWrite, blocks(addressOf(here), there.address, 4096, 100)),
              std::nullopt);
    EXPECT_TRUE(withdraw(*a_, 0));
    EXPECT_TRUE(withdraw(*b_, 0));
  }
  pair_.reset();
  a_.reset();
  b_.reset();
  for (const char* what : {"contexts", "memory", "host memory", "reservations", "streams", "events",
                           "handles", "modules"})
    EXPECT_EQ(fakeCudaHeld(what), 0U) << what;
}

}  // namespace
}  // namespace viaduct::testing
