// The sending half of a socket: which frame is next, and how much of it has left. Knows no socket:
// gather() gives what to send, sent() is told what was. Threads: under the agent's lock.
#pragma once

#include <memory>
#include <span>

#include "backends/tcp/initiator.h"
#include "backends/tcp/responder.h"

namespace viaduct::tcp {

class Outbound {
 public:
  Outbound(Initiator& initiator, Responder& responder, Buffers& buffers)
      : initiator_(initiator), responder_(responder), buffers_(buffers) {}

  bool wants() const { return frame_ || responder_.wants() || initiator_.wants(); }
  // Begins the next frame when there is none under way. Empty: nothing to send.
  std::span<const iovec> gather();
  // True when that was all of the frame.
  bool sent(std::size_t bytes);
  // The memory of this local pin is read no more: what is left of it in the frame becomes zeros,
  // and a READ's answer ends as refused. (A WRITE's job is stopped by its initiator.)
  void dropSlot(std::uint32_t slot);
  // The system could not read what gather() gave: memory was unmapped or protected after it was
  // pinned. What is left of the frame becomes zeros, and it ends as with dropSlot(). False: nothing
  // of that kind was to be read.
  bool faulted();
  void clear();

 private:
  bool compose();
  template <class Which>
  bool blank(Which which);

  Initiator& initiator_;
  Responder& responder_;
  Buffers& buffers_;
  std::unique_ptr<OutFrame> frame_;
  std::size_t next_ = 0;  // the first piece of it that has not left
  bool answers_first_ = false;
};

}  // namespace viaduct::tcp
