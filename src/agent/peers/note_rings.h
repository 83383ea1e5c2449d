// The note rings, in shared memory, through which peers have lately sent notes. Threads: under the
// agent's lock.
#pragma once

#include <vector>

namespace viaduct::agent {

class PeerImpl;

// A ring is armed or disarmed. The next note in an armed ring signals an eventfd, which wakes a
// thread that sleeps on the agent's poller. A disarmed ring is read in each round of progress, and
// its sender makes no system call. A ring that is not listed here is armed and empty, so a silent
// peer costs nothing.
class NoteRings {
 public:
  void add(PeerImpl& peer);
  void remove(const PeerImpl& peer);

  // Takes the waiting notes out of the rings. True: there was one.
  bool look();
  // Arms all rings, before the last thread sleeps. False: a note came before that, so look again.
  bool allowWakeups();
  // Disarms all rings, because a thread calls look() all the time until allowWakeups().
  void suppressWakeups();
  bool wakeupsSuppressed() const { return wakeups_suppressed_; }

 private:
  struct ListedRing {
    PeerImpl* peer;
    unsigned silent = 0;  // calls of allowWakeups() since its last note
  };
  std::vector<ListedRing> rings_;
  bool wakeups_suppressed_ = false;
};

}  // namespace viaduct::agent
