// Giving the interpreter to other threads while a call blocks or copies. Threads: call with the
// GIL.
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
#include <type_traits>

namespace viaduct::python {

namespace py = pybind11;

inline bool isFinalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// An interpreter that finalizes ends its daemon threads when they want the GIL: it unwinds their
// stacks, whose destructors then use Python objects without the GIL. So the threads that are in
// calls of this module stay there.
class Exit {
 public:
  // By the thread that runs the interpreter's atexit functions.
  static void begin() {
    thread_ = ::syscall(SYS_gettid);
    begun_.store(true, std::memory_order_release);
  }
  static bool hasBegun() { return begun_.load(std::memory_order_acquire); }
  // Without the GIL. Where the interpreter goes on after all, so does the thread.
  static void stay();
  [[noreturn]] static void stayForGood();

 private:
  static inline std::atomic<bool> begun_{false};
  static inline long thread_ = 0;
};

// Releases the GIL for the life of the object. No Python object may be touched meanwhile.
class Unlocked {
 public:
  Unlocked() : thread_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    if (Exit::hasBegun()) [[unlikely]]
      Exit::stay();
    try {
      PyEval_RestoreThread(thread_);
    } catch (const abi::__forced_unwind&) {
      Exit::stayForGood();
    }
  }

 private:
  PyThreadState* thread_;
};

// What the call gives, without the GIL.
template <class Call>
auto unlocked(const Call& call) {
  const Unlocked released;
  return call();
}

// The same, but for the interpreter's last steps: then other threads must not run any more.
template <class Call>
void unlockedFromDestructor(const Call& call) {
  if (isFinalizing()) return call();
  unlocked(call);
}

// Python runs signal handlers in the main thread alone.
inline bool isMainThread() { return ::syscall(SYS_gettid) == ::getpid(); }

// How long a wait of the main thread keeps Python's signal handlers waiting.
enum class Slices {
  kShort,    // for a call that costs nothing to begin again
  kGrowing,  // for one that asks a server: at most as long as it has waited already
};

// Calls `call(deadline)`, which waits, without the GIL. The main thread waits in slices, so that
// Ctrl-C raises KeyboardInterrupt. A call that fails before its slice is over has failed for good.
template <class Call>
auto waitUnlocked(Deadline until, const Call& call, Slices slices = Slices::kShort)
    -> decltype(call(until)) {
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
