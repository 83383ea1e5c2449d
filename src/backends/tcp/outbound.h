// The sending side of a socket. gather() returns the next bytes to send, and sent() is told how
// many the kernel took. The class itself does no system calls. Threads: those of the channel's
// rail.
#pragma once

#include <memory>
#include <span>

#include "backends/tcp/initiator.h"
#include "backends/tcp/responder.h"

namespace viaduct::tcp {

class Outbound {
 public:
  // If `keys` is not null, heads and trailers of frames are sealed.
  Outbound(Initiator& initiator, Responder& responder, Buffers& buffers,
           base::RecordKeys* keys = nullptr)
      : initiator_(initiator), responder_(responder), buffers_(buffers), keys_(keys) {}

  bool wants() const { return frame_ || responder_.wants() || initiator_.wants(); }
  // Returns the unsent rest of the frame, or of the next frame. Empty: nothing to send.
  std::span<const iovec> gather();
  // Whether the first piece of gather() lies in memory of the link, which is always readable.
  bool isOurs() const { return frame_->slot[next_] == FrameWriter::kNoSlot; }
  // True if the frame is now sent completely.
  bool sent(std::size_t bytes);
  // Stops reading this local pin. Its unsent bytes in the frame become zeros, and an answer to a
  // READ ends as refused. For a WRITE, JobTable::dropSlot() stops the job.
  void dropSlot(std::uint32_t slot);
  // Call it after EFAULT: pinned memory was unmapped or protected. The rest of the frame becomes
  // zeros, and the frame ends as refused. False: no pinned memory was to be read.
  bool faulted();
  void clear();

 private:
  bool compose();
  template <class Which>
  bool blank(Which which);

  Initiator& initiator_;
  Responder& responder_;
  Buffers& buffers_;
  base::RecordKeys* const keys_;
  std::unique_ptr<OutFrame> frame_;
  std::size_t next_ = 0;  // first piece of the frame that is not sent completely
  bool answers_first_ = false;
};

}  // namespace viaduct::tcp
