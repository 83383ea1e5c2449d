// The numbered frames of a session's life, which one connection after another carries. Threads: one
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "agent/session/frame.h"
#include "base/bytes.h"

namespace viaduct::agent {

// Those that the other end may not have heard: what has to be sent again when another connection
// takes over.
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
  void clear();

 private:
  const std::size_t limit_;
  std::deque<Kept> kept_;  // the last ones that were sent
  std::size_t bytes_ = 0;
  std::uint64_t sent_ = 0;
  bool full_ = false;
};

// Those that came. Of one that comes again the other end did not know that it was heard.
class HeardFrames {
 public:
  // The `count`th of this connection. False: it has come before, over another.
  bool take(std::uint64_t count);
  // All of the life, when `count` have come over this connection.
  std::uint64_t total(std::uint64_t count) const;
  // Another connection takes over from the one that brought `count`; its first frame is that behind
  // the `after`th of the life.
  void goOn(std::uint64_t count, std::uint64_t after);

 private:
  std::uint64_t before_ = 0;  // this connection
  std::uint64_t taken_ = 0;
};

}  // namespace viaduct::agent
