// Memory of GPUs that is lent to another process. Both ends are in this process, but do not know
// it, and so exchange descriptors of virtual memory.
#include <gtest/gtest.h>

#include "backends/cuda/share_message.h"
#include "device/cuda_testing.h"
#include "device/driver_memory.h"
#include "device/fake_cuda_testing.h"

namespace viaduct::testing {
namespace {

class CudaLend : public CudaPair {
 protected:
  void startApart(const Variables& variables = {}) {
    seed_.same_process = false;
    seed_.unix_socket = true;
    start(variables);
  }
  std::string text() { return link().state().text; }
};

TEST_F(CudaLend, MemoryIsMappedForTheFirstTransfer) {
  startApart();
  const Segment near = device(0, 0, 2 * kMiB);
  const Segment far = device(1, 0, 4 * kMiB);
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 0), "vmm");
  pair_->progress();
  EXPECT_EQ(fakeCudaCount("cuMemImportFromShareableHandle"), 0U);
  fillRandom(bytesOf(near), 1);
  for (const std::uint64_t block : {std::uint64_t{4096}, kMiB}) {
    const auto ops = blocks(near.address, far.address, block, 2 * kMiB / block);
    EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
    for (const core::Op& op : ops)
      ASSERT_TRUE(same(bytesOf(near).subspan(op.local - near.address, op.bytes),
                       bytesOf(far).subspan(op.remote - far.address, op.bytes)));
  }
  EXPECT_EQ(fakeCudaCount("cuMemImportFromShareableHandle"), 1U);
}

TEST_F(CudaLend, AnAgentWithoutAGpuMapsNothing) {
  startApart();
  host(0, 0, kMiB);
  device(1, 0, kMiB);
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 0), std::nullopt);
}

TEST_F(CudaLend, UnpinningWaitsForTheCopiesOfThePeer) {
  startApart();
  const Segment near = device(0, 0, kMiB);
  const Segment far = device(1, 0, 2 * kMiB);
  const auto ops = blocks(near.address, far.address, kMiB, 1);
  EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
  pair_->done[0].clear();
  fakeCudaPause(true);
  ASSERT_EQ(post(OpKind::kWrite, ops), 1U);
  Status left = b_->unpin(0);
  for (int i = 0; i < 20; ++i) pair_->progress();
  left = b_->unpin(0);
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Code::kBusy);
  EXPECT_EQ(left.error().peer, "a");
  EXPECT_FALSE(pair_->ends[1].link->settled());
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 0), std::nullopt);
  fakeCudaPause(false);
  ASSERT_TRUE(pair_->run([&] { return b_->unpin(0).has_value(); }));
  EXPECT_EQ(ended(), 1U);
  EXPECT_TRUE(pair_->ends[1].link->settled());
  const auto why = move(OpKind::kWrite, ops);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code, Code::kDenied) << why->text();
}

TEST_F(CudaLend, UnpinningWaitsForTheDriverToCloseTheMapping) {
  settings_.grace = std::chrono::seconds(30);
  startApart();
  const Segment near = device(0, 0, kMiB);
  const Segment far = device(1, 0, 2 * kMiB);
  EXPECT_EQ(move(OpKind::kWrite, blocks(near.address, far.address, kMiB, 1)), std::nullopt);
  hangProgram(near.address, near.address + 1);
  Status left = b_->unpin(0);
  for (int i = 0; i < 20; ++i) pair_->progress();
  left = b_->unpin(0);
  ASSERT_FALSE(left) << "the memory is still mapped";
  EXPECT_EQ(left.error().code, Code::kBusy);
  fakeCudaPause(false);
  ASSERT_TRUE(pair_->run([&] { return b_->unpin(0).has_value(); }));
}

TEST_F(CudaLend, AJobThatWaitsForTheMappingFailsIfThePinIsReleased) {
  startApart();
  const Segment near = device(0, 0, kMiB);
  const Segment far = device(1, 0, 2 * kMiB);
  const auto ops = blocks(near.address, far.address, kMiB, 1);
  ASSERT_EQ(post(OpKind::kWrite, ops), 1U);
  EXPECT_TRUE(b_->unpin(0)) << "nothing was lent yet";
  ASSERT_TRUE(pair_->run([&] { return ended() == 1; }));
  ASSERT_TRUE(failure());
  EXPECT_NE(text().find("not pinned any more"), std::string::npos) << text();
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 0), std::nullopt);
}

TEST_F(CudaLend, AFailedMappingFailsTheJobAndIsNotTriedAgain) {
  startApart();
  const Segment near = device(0, 0, kMiB);
  const Segment far = device(1, 0, 2 * kMiB);
  fakeCudaFail("cuMemImportFromShareableHandle", 1, 304);
  const auto why = move(OpKind::kWrite, blocks(near.address, far.address, kMiB, 1));
  ASSERT_TRUE(why);
  EXPECT_EQ(why->operation, "cuMemImportFromShareableHandle") << why->text();
  EXPECT_EQ(link().reaches(OpKind::kWrite, 0, 0), std::nullopt);
  EXPECT_NE(text().find("CUDA_ERROR_OPERATING_SYSTEM"), std::string::npos) << text();
  EXPECT_TRUE(withdraw(*b_, 0));
}

TEST_F(CudaLend, ReadOnlyMemoryIsNotLent) {
  startApart();
  device(0, 0, kMiB);
  auto memory = b_->deviceMemory()->allocate(0, kMiB);
  ASSERT_TRUE(memory) << memory.error().text();
  memory->access = MemoryAccess::kReadOnly;
  const auto key = b_->pin(0, *memory);
  ASSERT_TRUE(key) << key.error().text();
  link().addPin({.info = {.label = "weights",
                          .kind = MemoryKind::kDevice,
                          .address = memory->address,
                          .bytes = memory->bytes,
                          .access = MemoryAccess::kReadOnly},
                 .key = *key});
  EXPECT_EQ(link().reaches(OpKind::kRead, 0, 0), std::nullopt);
  EXPECT_NE(text().find("not \"weights\": the pin is read-only"), std::string::npos) << text();
}

// After the free, other memory that is not pinned gets the same address.
TEST_F(CudaLend, MemoryThatWasFreedIsNotLent) {
  startApart();
  const Segment near = device(0, 0, kMiB);
  std::uint32_t slot = 0;
  for (const auto kind : {cuda::MemoryClass::kLegacy, cuda::MemoryClass::kShareable}) {
    const auto memory = DriverMemory::make(kFakeCuda, kind, 2 * kMiB);
    ASSERT_TRUE(memory) << memory.error().text();
    const auto address = (*memory)->address();
    const auto opened = b_->deviceMemory()->open(Segment::gpu(0, address, 2 * kMiB));
    ASSERT_TRUE(opened) << opened.error().text();
    pair_->pin(1, ++slot, *opened);
    ASSERT_TRUE((*memory)->free());
    const auto again = DriverMemory::make(kFakeCuda, kind, 2 * kMiB);
    ASSERT_TRUE(again) << again.error().text();
    ASSERT_EQ((*again)->address(), address);
    auto ops = blocks(near.address, address, kMiB, 1);
    ops[0].remote_pin = slot;
    const auto why = move(OpKind::kWrite, ops);
    ASSERT_TRUE(why);
    EXPECT_NE(why->detail.find("freed since it was pinned"), std::string::npos) << why->text();
    EXPECT_EQ(link().reaches(OpKind::kWrite, 0, slot), std::nullopt);
  }
}

TEST_F(CudaLend, ThePeersProtocolIsChecked) {
  startApart();
  device(0, 0, kMiB);
  const Segment far = device(1, 0, kMiB);
  const auto key = cuda::decodeKey(*b_->pin(1, far));
  ASSERT_TRUE(key);
  link().addPin(
      {.info = {.kind = MemoryKind::kDevice, .address = far.address, .bytes = far.bytes, .slot = 1},
       .key = cuda::encodeKey(*key)});
  cuda::MemoryOffer offer{.pin = key->pin, .all = 1};  // an offer that nobody asked for
  offer.ranges.push_back({.base = far.address, .bytes = far.bytes, .buffer_id = 1});
  link().receive(cuda::encode(offer), {});
  EXPECT_EQ(link().state().phase, core::LinkState::Phase::kUnusable) << text();
}

TEST_F(CudaLend, NothingIsLeftOfAMappingAfterTheSession) {
  startApart();
  const Segment near = device(0, 0, kMiB);
  const Segment far = device(1, 0, 2 * kMiB);
  EXPECT_EQ(move(OpKind::kWrite, blocks(near.address, far.address, kMiB, 1)), std::nullopt);
  const auto settled = pair_->ends[1].link->settling();
  for (LinkEnd& end : pair_->ends) end.link->close(pair_->done[0]);
  EXPECT_TRUE(pair_->run(settled));
  EXPECT_TRUE(withdraw(*b_, 0));
}

}  // namespace
}  // namespace viaduct::testing
