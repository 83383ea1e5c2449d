// The numbered frames of a session's life that the other end may not have heard: what has to be
// sent again when another connection takes over. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "agent/session/frame.h"
#include "base/bytes.h"

namespace viaduct::agent {

class SentFrames {
 public:
  struct Kept {
    FrameType type;
    base::Bytes payload;
  };

  // Beyond so many bytes nothing is kept until the other end has caught up.
  explicit SentFrames(std::size_t limit) : limit_(limit) {}

  // The next one, whose payload is `head`, then `body`.
  void add(FrameType type, ByteSpan head, ByteSpan body);
  // The other end has heard so many of them, which it is asked to say often. False: more than ever
  // were sent.
  bool heard(std::uint64_t count);
  // Whether all that come after the `count`th are here: kept() begins with them once heard(count).
  bool follows(std::uint64_t count) const {
    return count <= sent_ && sent_ - count <= kept_.size();
  }
  const std::deque<Kept>& kept() const { return kept_; }
  std::uint64_t sent() const { return sent_; }
  void clear();

 private:
  const std::size_t limit_;
  std::deque<Kept> kept_;  // the last ones that were sent
  std::size_t bytes_ = 0;
  std::uint64_t sent_ = 0;
  bool full_ = false;
};

}  // namespace viaduct::agent
