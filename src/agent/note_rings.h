// The rings of an agent's peers through which notes have come lately. Threads: under the agent's
// lock.
#pragma once

#include <vector>

namespace viaduct::agent {

class PeerCore;

// A ring is armed (the next note in it rings, and wakes whoever sleeps on the agent's poller) or
// hushed (somebody looks into it in every turn, and the sender makes no system call). Rings that
// are not listed here are armed and empty, so looking costs nothing for peers that are silent.
class NoteRings {
 public:
  void add(PeerCore& peer);
  void remove(const PeerCore& peer);

  // Takes out what is there; true when something was.
  bool look();
  // Before nobody looks any more: arms them all. False: a note came before that, look again.
  bool listen();
  // Somebody will look all the time, until listen().
  void hush();
  bool hushed() const { return hushed_; }

 private:
  struct Listed {
    PeerCore* peer;
    unsigned silent = 0;  // calls of listen() since its last note
  };
  std::vector<Listed> rings_;
  bool hushed_ = false;
};

}  // namespace viaduct::agent
