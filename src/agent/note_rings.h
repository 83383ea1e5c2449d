// The rings of an agent's peers through which notes have come lately. Threads: under the agent's
// lock.
#pragma once

#include <vector>

namespace viaduct::agent {

class PeerImpl;

// A ring is armed (the next note in it rings, and wakes a thread that sleeps on the agent's poller)
// or disarmed (each round of progress looks into it, and the sender makes no system call). Rings
// that are not listed here are armed and empty, so looking costs nothing for peers that are silent.
class NoteRings {
 public:
  void add(PeerImpl& peer);
  void remove(const PeerImpl& peer);

  // Takes out what is there; true when something was.
  bool look();
  // Before the last thread sleeps: arms them all. False: a note came before that, look again.
  bool allowWakeups();
  // A thread looks all the time, until allowWakeups().
  void suppressWakeups();
  bool wakeupsSuppressed() const { return wakeups_suppressed_; }

 private:
  struct Listed {
    PeerImpl* peer;
    unsigned silent = 0;  // calls of allowWakeups() since its last note
  };
  std::vector<Listed> rings_;
  bool wakeups_suppressed_ = false;
};

}  // namespace viaduct::agent
