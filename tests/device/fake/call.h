// How every function of the driver's interface begins: it is counted, it may be told to fail, and
// it is refused without cuInit, in a child of fork() and, if it needs one, without a current
// context. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/fake/world.h"

namespace viaduct::fakegpu {

// The current contexts of this thread, the newest last.
std::vector<Context*>& contextStack();

// True on a thread that runs a function of cuLaunchHostFunc, which may call nothing.
bool& inHostFunction();

// Returns the error with which the call is refused, or kSuccess. Counts the call.
CUresult admit(World& world, const char* call);
// Whether this process is a child of the process that called cuInit. Counts the calls in children.
bool forked(const World& world);
std::atomic<std::uint64_t>& callsAfterFork();

// Calls body(World&, Lock&).
template <class Body>
CUresult inProcess(const char* call, Body body) {
  World& one = world();
  if (forked(one)) return CUresult::kNotInitialized;
  Lock lock(one);
  const CUresult refusal = admit(one, call);
  return refusal != CUresult::kSuccess ? refusal : body(one, lock);
}

// Calls body(World&, Lock&, Context&) with the thread's current context.
template <class Body>
CUresult inContext(const char* call, Body body) {
  return inProcess(call, [&](World& one, Lock& lock) {
    if (contextStack().empty()) return CUresult::kInvalidContext;
    Context& context = *contextStack().back();
    if (!context.alive) return kContextIsDestroyed;
    if (context.failure != CUresult::kSuccess) return context.failure;
    return body(one, lock, context);
  });
}

}  // namespace viaduct::fakegpu
