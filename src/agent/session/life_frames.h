// Counts the numbered frames of a session's life, which may move from one connection to another.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "agent/session/frame.h"
#include "base/bytes.h"

namespace viaduct::agent {

// Sent frames that the other end has not confirmed. They are sent again when another connection
// takes over.
class SentFrames {
 public:
  struct Kept {
    FrameType type;
    base::Bytes payload;
  };

  // Beyond `limit` bytes no frame is kept until the other end has confirmed all.
  explicit SentFrames(std::size_t limit) : limit_(limit) {}

  // Adds the next sent frame, whose payload is `head`, then `body`.
  void add(FrameType type, ByteSpan head, ByteSpan body);
  // The other end confirms `count` frames. False: that is more than were sent.
  bool heard(std::uint64_t count);
  // True if all frames after frame `count` are kept. After heard(count), kept() begins with them.
  bool follows(std::uint64_t count) const {
    return count <= sent_ && sent_ - count <= kept_.size();
  }
  const std::deque<Kept>& kept() const { return kept_; }
  void clear();

 private:
  const std::size_t limit_;
  std::deque<Kept> kept_;  // the last frames that were sent
  std::size_t bytes_ = 0;
  std::uint64_t sent_ = 0;
  bool full_ = false;
};

// Received frames. The other end repeats a frame if it does not know that the frame has arrived.
class HeardFrames {
 public:
  // Records that frame `count` of this connection has arrived. False: it is a duplicate, which an
  // earlier connection brought already.
  bool take(std::uint64_t count);
  // The number of frames of the life, of which `count` came over this connection.
  std::uint64_t total(std::uint64_t count) const;
  // Another connection takes over. The old one has brought `count` frames. The first frame of the
  // new one follows frame `after` of the life.
  void goOn(std::uint64_t count, std::uint64_t after);

 private:
  std::uint64_t before_ = 0;  // frames of the life before this connection
  std::uint64_t taken_ = 0;
};

}  // namespace viaduct::agent
