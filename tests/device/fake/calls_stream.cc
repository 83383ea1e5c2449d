// Streams, events, host functions, and words that a stream writes or waits for.
#include <sched.h>

#include <atomic>

#include "device/fake/allocations.h"
#include "device/fake/call.h"

namespace viaduct::fakegpu {
namespace {

CUresult createStream(const char* call, CUstream* stream, unsigned flags) {
  return inContext(call, [&](World& one, Lock&, Context& context) {
    if ((flags & ~kStreamNonBlocking) != 0) return CUresult::kInvalidValue;
    const bool blocking = (flags & kStreamNonBlocking) == 0;
    *stream = one.streams.add<CUstream>(makeStream(one, context, blocking));
    return CUresult::kSuccess;
  });
}

// An event can be recorded only in a stream of its own context.
CUresult record(World& world, Context& context, CUevent handle, CUstream stream_handle) {
  const auto event = world.events.find(handle);
  const auto stream = streamOf(world, context, stream_handle);
  if (event == nullptr || stream == nullptr || event->context != &stream->context())
    return CUresult::kInvalidHandle;
  event->moment = stream->last();
  return CUresult::kSuccess;
}

// The stream's next work begins after the event.
CUresult waitForEvent(World& world, Context& context, CUstream stream, CUevent handle) {
  const auto event = world.events.find(handle);
  if (event == nullptr) return CUresult::kInvalidHandle;
  Work work;
  work.run = [] { return CUresult::kSuccess; };
  work.after.push_back(event->moment);
  return enqueue(world, context, stream, std::move(work));
}

// Calls a function that may call nothing of the driver.
template <class Function>
CUresult callOnHost(Function function) {
  inHostFunction() = true;
  function();
  inHostFunction() = false;
  return CUresult::kSuccess;
}

CUresult failureOf(World& world, const Context& context) {
  const Lock lock(world);
  return context.failure;
}

template <class Word>
CUresult writeValue(const char* call, CUstream stream, CUdeviceptr address, Word value) {
  return inContext(call, [&](World& one, Lock&, Context& context) {
    Place place;
    if (address % sizeof(Word) != 0 || findPlace(one, context, User::kKernel, address, sizeof(Word),
                                                 true, place) != CUresult::kSuccess)
      return CUresult::kInvalidValue;
    Work work;
    work.run = [place, value] {
      std::atomic_ref<Word>(*reinterpret_cast<Word*>(place.at)).store(value);
      return CUresult::kSuccess;
    };
    return enqueue(one, context, stream, std::move(work));
  });
}

// The conditions of cuStreamWaitValue: at least (as a distance), equal, any bit, no common bit.
template <class Word>
bool meets(Word seen, Word value, unsigned condition) {
  switch (condition) {
    case 0:
      return static_cast<std::make_signed_t<Word>>(seen - value) >= 0;
    case 1:
      return seen == value;
    case 2:
      return (seen & value) != 0;
    default:
      return static_cast<Word>(~(seen | value)) != 0;
  }
}

template <class Word>
CUresult waitValue(const char* call, CUstream stream, CUdeviceptr address, Word value,
                   unsigned condition) {
  return inContext(call, [&](World& one, Lock&, Context& context) {
    Place place;
    if (condition > 3 || address % sizeof(Word) != 0 ||
        findPlace(one, context, User::kKernel, address, sizeof(Word), false, place) !=
            CUresult::kSuccess)
      return CUresult::kInvalidValue;
    Work work;
    work.run = [place, value, condition] {
      const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(place.at));
      while (!meets(word.load(), value, condition)) ::sched_yield();
      return CUresult::kSuccess;
    };
    return enqueue(one, context, stream, std::move(work));
  });
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return createStream("cuStreamCreate", stream, flags);
}

FAKE_CUDA_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return createStream("cuStreamCreateWithPriority", stream, flags);
}

// Work that was added before still runs to its end.
FAKE_CUDA_EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
  return inContext("cuStreamDestroy", [&](World& one, Lock&, Context&) {
    const auto stream = one.streams.find(handle);
    if (stream == nullptr) return CUresult::kInvalidHandle;
    stream->close();
    one.streams.remove(handle);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  return inContext("cuStreamSynchronize", [&](World& one, Lock& lock, Context& context) {
    const auto stream = streamOf(one, context, handle);
    return stream == nullptr ? CUresult::kInvalidHandle : waitFor(lock, stream->last());
  });
}

FAKE_CUDA_EXPORT CUresult cuStreamQuery(CUstream handle) {
  return inContext("cuStreamQuery", [&](World& one, Lock&, Context& context) {
    const auto stream = streamOf(one, context, handle);
    if (stream == nullptr) return CUresult::kInvalidHandle;
    return stream->last().reached() ? CUresult::kSuccess : CUresult::kNotReady;
  });
}

FAKE_CUDA_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return inContext("cuLaunchHostFunc", [&](World& one, Lock&, Context& context) {
    if (function == nullptr) return CUresult::kInvalidValue;
    Work work;
    work.run = [function, data] { return callOnHost([&] { function(data); }); };
    return enqueue(one, context, stream, std::move(work));
  });
}

// Unlike a function of cuLaunchHostFunc, the callback is called after a failure too.
FAKE_CUDA_EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function,
                                              void* data, unsigned flags) {
  return inContext("cuStreamAddCallback", [&](World& one, Lock&, Context& context) {
    if (function == nullptr || flags != 0) return CUresult::kInvalidValue;
    Work work;
    work.always = true;
    work.run = [&one, &context, stream, function, data] {
      const CUresult result = failureOf(one, context);
      callOnHost([&] { function(stream, result, data); });
      return result;
    };
    return enqueue(one, context, stream, std::move(work));
  });
}

FAKE_CUDA_EXPORT CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address,
                                                  std::uint32_t value, unsigned) {
  return writeValue("cuStreamWriteValue32", stream, address, value);
}

FAKE_CUDA_EXPORT CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address,
                                                  std::uint64_t value, unsigned) {
  return writeValue("cuStreamWriteValue64", stream, address, value);
}

FAKE_CUDA_EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address,
                                                 std::uint32_t value, unsigned flags) {
  return waitValue("cuStreamWaitValue32", stream, address, value, flags);
}

FAKE_CUDA_EXPORT CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address,
                                                 std::uint64_t value, unsigned flags) {
  return waitValue("cuStreamWaitValue64", stream, address, value, flags);
}

FAKE_CUDA_EXPORT CUresult cuEventCreate(CUevent* event, unsigned) {
  return inContext("cuEventCreate", [&](World& one, Lock&, Context& context) {
    *event = one.events.add<CUevent>(std::make_shared<Event>(Event{&context, {}}));
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuEventDestroy_v2(CUevent handle) {
  return inContext("cuEventDestroy", [&](World& one, Lock&, Context&) {
    if (one.events.find(handle) == nullptr) return CUresult::kInvalidHandle;
    one.events.remove(handle);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  return inContext("cuEventRecord", [&](World& one, Lock&, Context& context) {
    return record(one, context, event, stream);
  });
}

FAKE_CUDA_EXPORT CUresult cuEventQuery(CUevent handle) {
  return inProcess("cuEventQuery", [&](World& one, Lock&) {
    const auto event = one.events.find(handle);
    if (event == nullptr) return CUresult::kInvalidHandle;
    if (!event->moment.reached()) return CUresult::kNotReady;
    return event->context->failure;
  });
}

FAKE_CUDA_EXPORT CUresult cuEventSynchronize(CUevent handle) {
  return inProcess("cuEventSynchronize", [&](World& one, Lock& lock) {
    const auto event = one.events.find(handle);
    return event == nullptr ? CUresult::kInvalidHandle : waitFor(lock, event->moment);
  });
}

FAKE_CUDA_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return inContext("cuStreamWaitEvent", [&](World& one, Lock&, Context& context) {
    return waitForEvent(one, context, stream, event);
  });
}
// NOLINTEND(readability-identifier-naming)
