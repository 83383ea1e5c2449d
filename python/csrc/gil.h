// Releases the GIL while a call blocks or copies, so that other Python threads run. Threads: call
// with the GIL, except where a comment says otherwise.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "base/attempt.h"

namespace viaduct::python {

namespace py = pybind11;

inline bool isFinalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// A finalizing interpreter ends a daemon thread that asks for the GIL, by unwinding the thread's
// stack. Destructors on that stack would then use Python objects without the GIL. So a thread
// inside a call of this module blocks there instead.
class Exit {
 public:
  // The thread that runs the interpreter's atexit functions calls begin() first.
  static void begin() {
    thread_ = ::syscall(SYS_gettid);
    begun_.store(true, std::memory_order_release);
  }
  static bool hasBegun() { return begun_.load(std::memory_order_acquire); }
  // Blocks the calling thread, which must not hold the GIL. Never returns if the interpreter
  // finalizes. Otherwise returns after one second, and at once in the thread that called begin().
  static void stay();

  // Runs `take`, which takes the GIL.
  template <class Take>
  static auto enter(const Take& take) {
    if (hasBegun()) [[unlikely]]
      stay();
    try {
      return take();
    } catch (const abi::__forced_unwind&) {
      stayForGood();
    }
  }

 private:
  [[noreturn]] static void stayForGood();
  static inline std::atomic<bool> begun_{false};
  static inline long thread_ = 0;
};

// Releases the GIL as long as the object lives. The thread must not touch Python objects during
// that time.
class Unlocked {
 public:
  Unlocked() : thread_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() { restore(thread_); }

  // Takes the GIL again, which PyEval_SaveThread() released in this thread.
  static void restore(PyThreadState* thread) {
    Exit::enter([thread] { PyEval_RestoreThread(thread); });
  }

 private:
  PyThreadState* thread_;
};

// Takes the GIL in a thread of the library.
class Locked {
 public:
  Locked() : state_(Exit::enter([] { return PyGILState_Ensure(); })) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { PyGILState_Release(state_); }

 private:
  const PyGILState_STATE state_;
};

// Runs `call` without the GIL and returns its result.
template <class Call>
auto unlocked(const Call& call) {
  const Unlocked released;
  return call();
}

// Runs `call` without the GIL. Keeps the GIL if the interpreter finalizes, because other threads
// must not run any more.
template <class Call>
void unlockedFromDestructor(const Call& call) {
  if (isFinalizing()) return call();
  unlocked(call);
}

// Python runs signal handlers only in the main thread.
inline bool isMainThread() { return ::syscall(SYS_gettid) == ::getpid(); }

// Limits the time for which a waiting main thread delays Python's signal handlers.
enum class Slices {
  kShort,    // 50 ms, for a call that is cheap to repeat
  kGrowing,  // for a call that asks a server: each slice lasts as long as the wait so far
};

// How long a call waits: up to a moment, or not at all. In the second case `watcher` is told when
// the call is worth another try.
struct WaitLimit {
  WaitLimit(Deadline at = Deadline::never()) : until(at) {}
  explicit WaitLimit(std::shared_ptr<base::Watcher> told) : watcher(std::move(told)) {}

  Deadline until = Deadline::never();
  std::shared_ptr<base::Watcher> watcher = {};
};

// Raises BlockingIOError if `call` would wait.
template <class Call>
auto attemptUnlocked(const std::shared_ptr<base::Watcher>& watcher, const Call& call)
    -> decltype(call(Deadline::never())) {
  auto [result, would_block] = unlocked([&] {
    const base::Attempt attempt(watcher);
    auto tried = call(Deadline::never());
    return std::pair(std::move(tried), attempt.wouldBlock());
  });
  if (result || !would_block) return std::move(result);
  PyErr_SetNone(PyExc_BlockingIOError);
  throw py::error_already_set();
}

// Runs the waiting function `call(deadline)` without the GIL. The main thread repeats `call` for
// short slices of time, so that Ctrl-C raises KeyboardInterrupt between two slices. An error that
// `call` returns before the end of a slice is final.
template <class Call>
auto waitUnlocked(const WaitLimit& limit, const Call& call, Slices slices = Slices::kShort)
    -> decltype(call(limit.until)) {
  if (limit.watcher) return attemptUnlocked(limit.watcher, call);
  const Deadline until = limit.until;
  constexpr Duration kSlice = std::chrono::milliseconds(50);
  if (!isMainThread()) return unlocked([&] { return call(until); });
  const auto began = Clock::now();
  for (;;) {
    const auto now = Clock::now();
    const Duration next = slices == Slices::kShort ? kSlice : std::max(kSlice, now - began);
    const Deadline slice = std::min(until.at(), now + next);
    auto result = unlocked([&] { return call(slice); });
    if (result || !slice.passed() || slice.at() == until.at()) return result;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

}  // namespace viaduct::python
