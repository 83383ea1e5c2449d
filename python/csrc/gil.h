// Giving the interpreter to other threads while a call blocks or copies. Threads: call with the
// GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <algorithm>
#include <chrono>
#include <type_traits>

namespace viaduct::python {

namespace py = pybind11;

// Releases the GIL for the life of the object. No Python object may be touched meanwhile.
class Unlocked {
 public:
  Unlocked() : thread_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  // An interpreter that exits ends other threads here, by unwinding their stacks.
  ~Unlocked() noexcept(false) { PyEval_RestoreThread(thread_); }

 private:
  PyThreadState* thread_;
};

// What the call gives, without the GIL.
template <class Call>
auto unlocked(const Call& call) {
  const Unlocked released;
  return call();
}

inline bool isFinalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// A destructor must not unwind, so it gives away the GIL only where the interpreter goes on.
template <class Call>
void unlockedFromDestructor(const Call& call) {
  if (isFinalizing()) return call();
  PyThreadState* thread = PyEval_SaveThread();
  call();
  PyEval_RestoreThread(thread);
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
