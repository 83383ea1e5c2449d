// Reads a socket: bytes for the decoder, and file descriptors. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "agent/session/frame.h"
#include "base/fd.h"

namespace viaduct::agent {

class Inbox {
 public:
  struct Read {
    std::size_t bytes = 0;
    bool more = false;   // the buffer was filled, so the socket may hold more
    bool ended = false;  // the end of the stream
  };

  FrameDecoder& decoder() { return decoder_; }
  const FrameDecoder& decoder() const { return decoder_; }
  void acceptFds() { fds_welcome_ = true; }

  // Calls recvmsg once, into the decoder.
  Result<Read> read(int socket);
  // Gives the fds of a frame. False: they have not all arrived.
  bool takeFds(std::size_t count, std::vector<base::Fd>& out);

 private:
  FrameDecoder decoder_;
  std::deque<base::Fd> fds_;
  bool fds_welcome_ = false;
};

}  // namespace viaduct::agent
