// A mutex with annotations for clang's thread-safety analysis. Members and functions declare with
// them which lock they need. Other compilers ignore them. docs/threads.md has the order of locks.
#pragma once

#include <mutex>

#if defined(__clang__)
#define VIADUCT_ANNOTATION(text) __attribute__((text))
#else
#define VIADUCT_ANNOTATION(text)
#endif

#define VIADUCT_CAPABILITY(name) VIADUCT_ANNOTATION(capability(name))
#define VIADUCT_SCOPED_CAPABILITY VIADUCT_ANNOTATION(scoped_lockable)
#define VIADUCT_GUARDED_BY(lock) VIADUCT_ANNOTATION(guarded_by(lock))
#define VIADUCT_REQUIRES(...) VIADUCT_ANNOTATION(requires_capability(__VA_ARGS__))
#define VIADUCT_REQUIRES_SHARED(...) VIADUCT_ANNOTATION(requires_shared_capability(__VA_ARGS__))
#define VIADUCT_EXCLUDES(...) VIADUCT_ANNOTATION(locks_excluded(__VA_ARGS__))
#define VIADUCT_ACQUIRE(...) VIADUCT_ANNOTATION(acquire_capability(__VA_ARGS__))
#define VIADUCT_ACQUIRE_SHARED(...) VIADUCT_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define VIADUCT_TRY_ACQUIRE(...) VIADUCT_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define VIADUCT_RELEASE(...) VIADUCT_ANNOTATION(release_capability(__VA_ARGS__))
#define VIADUCT_RELEASE_SHARED(...) VIADUCT_ANNOTATION(release_shared_capability(__VA_ARGS__))
#define VIADUCT_RELEASE_GENERIC(...) VIADUCT_ANNOTATION(release_generic_capability(__VA_ARGS__))
#define VIADUCT_UNCHECKED VIADUCT_ANNOTATION(no_thread_safety_analysis)

namespace viaduct::base {

class VIADUCT_CAPABILITY("mutex") Mutex {
 public:
  void lock() VIADUCT_ACQUIRE() { mutex_.lock(); }
  bool try_lock() VIADUCT_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() VIADUCT_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Holds a Mutex for a scope.
class VIADUCT_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) VIADUCT_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() VIADUCT_RELEASE() { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace viaduct::base
