// Two threads of this process that make the driver's slow calls. The registrar registers host
// memory, which takes 0.1 to 0.3 ms for each MiB, and unregisters it. The other thread ends all
// other things of the driver. The driver ends a thing after all work of the GPU. So while a kernel
// of the program hangs, these threads alone wait for it. Threads: any.
#pragma once

#include <viaduct/deadline.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "cuda/end_bell.h"

namespace viaduct::cuda {

// Work that takes so much longer than expected may last for ever.
constexpr std::chrono::milliseconds kPatience{500};

// Does the work on the registrar, in the order of the calls. Then all bells ring. False: no thread
// can be started, and the work is not done.
bool onRegistrar(std::function<void()> work, Duration expected = {});
// Whether the registrar's work has lasted kPatience longer than expected.
bool registrarHangs();
// Waits for all earlier work of the registrar, but kPatience at most, and not while it hangs.
void awaitRegistrar();

// The number of an end, for isEnded().
using EndNumber = std::uint64_t;
// Ends things of the driver on the other thread, or here if there is no such thread. Returns at
// once. All bells ring after the end.
EndNumber endLater(std::function<void()> end);
bool isEnded(EndNumber number);
// Waits for all earlier ends, but kPatience at most, and not while one hangs.
void awaitEnds();

// From now on this bell rings as well, as long as the bell exists.
void addBell(const std::shared_ptr<EndBell>& bell);

// Owns an object that has things of the driver. endLater() ends it.
template <class T>
std::shared_ptr<T> endsLater(T* object) {
  return std::shared_ptr<T>(object, [](T* one) { endLater([one] { delete one; }); });
}
// The last owner waits for the end, as awaitEnds() does.
template <class T>
std::shared_ptr<T> endsSoon(T* object) {
  return std::shared_ptr<T>(object, [](T* one) {
    if (endLater([one] { delete one; }) != 0) awaitEnds();
  });
}

}  // namespace viaduct::cuda
