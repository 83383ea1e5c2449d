// The thread of this process that makes the driver's slow calls. They register host memory, which
// takes 0.1 to 0.3 ms for each MiB, and end things. The driver ends a thing after all work of the
// GPU. So while a kernel of the program hangs, this thread alone waits for it. Threads: any.
#pragma once

#include <viaduct/deadline.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "cuda/end_bell.h"

namespace viaduct::cuda {

// Work that takes so much longer than expected may last for ever.
constexpr std::chrono::milliseconds kPatience{500};

// The number of a piece of work, for isDone().
using WorkNumber = std::uint64_t;

// Does the work on that thread, in the order of the calls. Then all bells ring. Empty: no thread
// can be started, and the work is not done.
std::optional<WorkNumber> onDriverThread(std::function<void()> work, Duration expected = {});
bool isDone(WorkNumber number);
// Whether the thread's work has lasted kPatience longer than expected.
bool driverThreadHangs();
// Waits for all earlier work, but kPatience at most, and not while the thread hangs.
void awaitDriverThread();
// Ends a thing of the driver on that thread, or here if there is no such thread. Returns at once.
WorkNumber endLater(std::function<void()> end, Duration expected = {});
// From now on this bell rings as well, as long as the bell exists.
void addBell(const std::shared_ptr<EndBell>& bell);

// Owns an object that has things of the driver. It ends on that thread, and the last owner waits as
// awaitDriverThread() does.
template <class T>
std::shared_ptr<T> endsOnDriverThread(T* object, Duration expected = {}) {
  return std::shared_ptr<T>(object, [expected](T* one) {
    if (endLater([one] { delete one; }, expected) != 0) awaitDriverThread();
  });
}

}  // namespace viaduct::cuda
