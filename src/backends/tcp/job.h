// A Work that a rail has taken, until all of its ops have come back. Threads: under the agent's
// lock.
#pragma once

#include <list>
#include <optional>

#include "core/op.h"

namespace viaduct::tcp {

class DataSocket;
struct Job;

// The rail that took it.
class JobOwner {
 public:
  virtual void report(Job& job) = 0;  // ops have ended: at the next poll()

 protected:
  ~JobOwner() = default;
};

struct Job {
  core::Work work;
  JobOwner* owner = nullptr;
  DataSocket* data_socket = nullptr;  // the socket it goes through; none once that is lost
  std::list<Job>::iterator self;

  std::size_t next_op = 0;        // the first op that is not yet in a frame...
  std::uint64_t offset = 0;       // ...and how much of it is
  std::uint32_t outstanding = 0;  // frames or requests that the peer has not answered
  std::uint64_t moved_ops = 0, moved_bytes = 0;  // finished and not reported
  std::uint64_t reported_ops = 0;
  std::optional<Error> why = {};  // set: no more of it is sent, and what is left fails
  bool rail_lost = false;         // that is why
  std::uint32_t lost_socket = 0;  // which of the link's it went through when that was lost...
  std::uint32_t lost_life = 0;    // ...and which life of it
  bool reporting = false;         // in the owner's list
  bool ended = false;             // nobody but the owner knows it any more

  bool allFramed() const { return next_op == work.ops.size(); }
};

}  // namespace viaduct::tcp
