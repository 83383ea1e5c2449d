// The fake driver's streams and events behave as the real one's.
#include <sched.h>

#include <algorithm>
#include <atomic>

#include "device/fake_cuda_testing.h"

namespace viaduct::testing {
namespace {

// Streams begin no work while the object exists.
struct Paused {
  Paused() { fakeCudaPause(true); }
  ~Paused() { fakeCudaPause(false); }
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;
};

// Registered memory with a text.
struct Pinned {
  explicit Pinned(std::string with) : text(std::move(with)) {
    EXPECT_EQ(fakeApi().memHostRegister(text.data(), text.size(), 0), CUresult::kSuccess);
  }
  ~Pinned() { EXPECT_EQ(fakeApi().memHostUnregister(text.data()), CUresult::kSuccess); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  CUdeviceptr address() const { return hostAddress(text.data()); }
  std::string text;
};

TEST(FakeStream, CopiesOfRegisteredMemoryRunLater) {
  const OnDevice device;
  const CUstream stream = newStream();
  const CUdeviceptr there = allocate(10);
  const Pinned from("0123456789");
  CUevent event = nullptr;
  EXPECT_EQ(fakeApi().eventCreate(&event, kEventDisableTiming), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().eventQuery(event), CUresult::kSuccess);
  {
    const Paused paused;
    EXPECT_EQ(fakeApi().memcpyAsync(there, from.address(), 10, stream), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().eventRecord(event, stream), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().eventQuery(event), CUresult::kNotReady);
    EXPECT_EQ(bytesAt(there, 1), std::string(1, '\0'));
  }
  EXPECT_EQ(fakeApi().streamSynchronize(stream), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().eventQuery(event), CUresult::kSuccess);
  EXPECT_EQ(bytesAt(there, 10), "0123456789");
  EXPECT_EQ(fakeApi().eventDestroy(event), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().eventQuery(event), CUresult::kInvalidHandle);
  EXPECT_EQ(fakeApi().streamDestroy(stream), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().streamSynchronize(stream), CUresult::kInvalidHandle);
}

TEST(FakeStream, CopiesOfOtherHostMemoryEndBeforeTheCallReturns) {
  const OnDevice device;
  const CUstream stream = newStream();
  const CUdeviceptr there = allocate(10);
  const std::string from = "0123456789";
  const std::uint64_t before = fakeCudaBytesPageable();
  EXPECT_EQ(fakeApi().memcpyAsync(there, hostAddress(from.data()), 10, stream), CUresult::kSuccess);
  EXPECT_EQ(bytesAt(there, 10), from);
  EXPECT_EQ(fakeCudaBytesPageable(), before + 10);
}

TEST(FakeStream, WorkRunsInOrder) {
  const OnDevice device;
  const CUstream stream = newStream();
  std::vector<int> order;
  struct Note {
    std::vector<int>* order;
    int number;
  };
  std::vector<Note> notes;
  for (int i = 0; i < 100; ++i) notes.push_back({&order, i});
  for (Note& note : notes)
    EXPECT_EQ(launchHostFunc(
                  stream,
                  [](void* data) {
                    const Note& one = *static_cast<Note*>(data);
                    one.order->push_back(one.number);
                  },
                  &note),
              CUresult::kSuccess);
  EXPECT_EQ(fakeApi().streamSynchronize(stream), CUresult::kSuccess);
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(FakeStream, AHostFunctionMayCallNothing) {
  const OnDevice device;
  CUresult inside = CUresult::kSuccess;
  EXPECT_EQ(launchHostFunc(
                nullptr,
                [](void* data) {
                  CUdeviceptr address = 0;
                  *static_cast<CUresult*>(data) = fakeApi().memAlloc(&address, 1);
                },
                &inside),
            CUresult::kSuccess);
  EXPECT_EQ(fakeApi().streamSynchronize(nullptr), CUresult::kSuccess);
  EXPECT_EQ(inside, CUresult::kNotPermitted);
}

// A function of cuLaunchHostFunc, in contrast, is not called after a failure.
TEST(FakeStream, ACallbackIsCalledAfterAFailureToo) {
  const OnDevice device;
  const CUstream stream = newStream();
  const CUdeviceptr there = allocate(10);
  CUresult seen = CUresult::kSuccess;
  bool called = false;
  fakeCudaFail("copy", 1, 700);
  {
    const Paused paused;
    EXPECT_EQ(fakeApi().memcpyAsync(there, there + 5, 5, stream), CUresult::kSuccess);
    EXPECT_EQ(launchHostFunc(
                  stream, [](void* data) { *static_cast<bool*>(data) = true; }, &called),
              CUresult::kSuccess);
    EXPECT_EQ(
        fakeApi().streamAddCallback(
            stream,
            [](CUstream, CUresult result, void* data) { *static_cast<CUresult*>(data) = result; },
            &seen, 0),
        CUresult::kSuccess);
  }
  const auto synchronize = fakeCudaFunction<CUresult()>("cuCtxSynchronize");
  while (synchronize() == CUresult::kSuccess) ::sched_yield();
  while (fakeApi().primaryCtxRelease(0) != CUresult::kSuccess) ::sched_yield();
  EXPECT_EQ(seen, CUresult::kIllegalAddress);
  EXPECT_FALSE(called);
  CUcontext again = nullptr;
  EXPECT_EQ(fakeApi().primaryCtxRetain(&again, 0), CUresult::kSuccess);
}

TEST(FakeStream, AStreamWaitsForAnotherOnesEvent) {
  const OnDevice device;
  const CUstream first = newStream();
  const CUstream second = newStream();
  const auto waitEvent =
      fakeCudaFunction<CUresult(CUstream, CUevent, unsigned)>("cuStreamWaitEvent");
  const CUdeviceptr there = allocate(64);
  const Pinned from(std::string(64, 'x'));
  const Pinned back(std::string(64, ' '));
  CUevent event = nullptr;
  EXPECT_EQ(fakeApi().eventCreate(&event, kEventDisableTiming), CUresult::kSuccess);
  for (int round = 0; round < 20; ++round) {
    std::memset(fakeCudaAlias(there), ' ', 64);
    EXPECT_EQ(fakeApi().memcpyAsync(there, from.address(), 64, first), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().eventRecord(event, first), CUresult::kSuccess);
    EXPECT_EQ(waitEvent(second, event, 0), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().memcpyAsync(back.address(), there, 64, second), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().streamSynchronize(second), CUresult::kSuccess);
    EXPECT_EQ(back.text, from.text);
  }
}

TEST(FakeStream, AStreamWritesAWordAfterItsCopies) {
  const OnDevice device;
  const CUstream stream = newStream();
  const auto writeValue =
      fakeCudaFunction<CUresult(CUstream, CUdeviceptr, std::uint64_t, unsigned)>(
          "cuStreamWriteValue64_v2");
  const CUdeviceptr there = allocate(64);
  const Pinned from(std::string(64, 'x'));
  alignas(8) std::uint64_t word = 0;
  EXPECT_EQ(writeValue(stream, hostAddress(&word), 7, 0), CUresult::kInvalidValue);
  EXPECT_EQ(fakeApi().memHostRegister(&word, 8, 0), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memcpyAsync(there, from.address(), 64, stream), CUresult::kSuccess);
  EXPECT_EQ(writeValue(stream, hostAddress(&word), 7, 0), CUresult::kSuccess);
  while (std::atomic_ref<std::uint64_t>(word).load() != 7) ::sched_yield();
  EXPECT_EQ(bytesAt(there, 64), from.text);
  EXPECT_EQ(fakeApi().memHostUnregister(&word), CUresult::kSuccess);
}

TEST(FakeStream, AnEventAndAStreamAreOfOneContext) {
  const OnDevice zero(0);
  CUevent event = nullptr;
  EXPECT_EQ(fakeApi().eventCreate(&event, 0), CUresult::kSuccess);
  const OnDevice one(1);
  EXPECT_EQ(fakeApi().eventRecord(event, newStream()), CUresult::kInvalidHandle);
}

// After a failure on the device, every later call in its context fails. Other contexts go on.
TEST(FakeStream, AFailureOnTheDeviceStays) {
  const OnDevice other(1);
  const OnDevice device(0);
  const CUstream stream = newStream();
  const CUdeviceptr there = allocate(10);
  CUevent event = nullptr;
  EXPECT_EQ(fakeApi().eventCreate(&event, 0), CUresult::kSuccess);
  fakeCudaFail("copy", 1, 700);
  CUdeviceptr address = 0;
  {
    const Paused paused;
    EXPECT_EQ(fakeApi().memcpyAsync(there, there + 5, 5, stream), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().eventRecord(event, stream), CUresult::kSuccess);
  }
  EXPECT_EQ(fakeApi().streamSynchronize(stream), CUresult::kIllegalAddress);
  EXPECT_EQ(fakeApi().eventQuery(event), CUresult::kIllegalAddress);
  EXPECT_EQ(fakeApi().memAlloc(&address, 1), CUresult::kIllegalAddress);
  EXPECT_EQ(fakeApi().ctxPushCurrent(other.handle()), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memAlloc(&address, 1), CUresult::kSuccess);
  CUcontext popped = nullptr;
  EXPECT_EQ(fakeApi().ctxPopCurrent(&popped), CUresult::kSuccess);
}

}  // namespace
}  // namespace viaduct::testing
