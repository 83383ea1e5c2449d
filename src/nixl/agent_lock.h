// The lock that guards the members of an agent. Each interface has its own lock: Python has the
// GIL, and C a mutex.
#pragma once

namespace viaduct::nixl {

class AgentLock {
 public:
  virtual ~AgentLock() = default;
  // Unlocks, so that other threads call meanwhile. Returns the argument for the next lock().
  virtual void* unlock() = 0;
  virtual void lock(void* unlocked) = 0;
};

// Releases the lock as long as the object lives, around a call that blocks or copies.
class Unlocked {
 public:
  explicit Unlocked(AgentLock& lock) : lock_(lock), unlocked_(lock.unlock()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() { lock_.lock(unlocked_); }

 private:
  AgentLock& lock_;
  void* const unlocked_;
};

// Runs `call` without the lock and returns its result.
template <class Call>
auto unlocked(AgentLock& lock, const Call& call) {
  const Unlocked released(lock);
  return call();
}

}  // namespace viaduct::nixl
