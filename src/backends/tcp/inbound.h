// The receiving half of a socket: where the next bytes go, and what they mean. Knows no socket:
// scatter() gives where to put bytes, received() is told how many came. Threads: under the agent's
// lock.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backends/tcp/initiator.h"
#include "backends/tcp/responder.h"

namespace viaduct::tcp {

class Inbound {
 public:
  Inbound(const TargetPins& pins, Initiator& initiator, Responder& responder, Buffers& buffers)
      : pins_(pins), initiator_(initiator), responder_(responder), buffers_(buffers) {}

  std::span<const iovec> scatter();
  std::size_t room() const { return room_; }  // of the last scatter()
  // What the peer did wrong; empty: nothing.
  std::string_view received(std::size_t bytes);
  // The memory of this local pin is written no more: what is left of the frame goes to scrap.
  void dropSlot(std::uint32_t slot);
  // The system could not write where scatter() said: memory was unmapped or protected after it was
  // pinned. What is left of the frame goes to scrap. False: nothing of that kind was to be written.
  bool faulted();
  // Gives the buffer back when nothing is under way.
  void rest();
  // How many bytes are worth waking up for: of a long payload that comes slowly, not each packet.
  std::size_t worthwhile() const;
  void clear();

 private:
  enum class State : std::uint8_t { kHead, kPayload, kTrailer };
  std::size_t staged() const { return end_ - begin_; }
  const std::byte* at() const { return buffer_->staging.data() + begin_; }
  bool frameIsWhole(std::string_view& wrong);
  std::string_view beginFrame(std::span<const std::byte> entries);
  std::string_view beginWrite(std::span<const std::byte> entries);
  std::string_view beginAnswer();
  std::string_view takeStaged();
  bool takeFrame(std::string_view& wrong);
  bool takePayload();
  bool place(std::size_t bytes);
  bool takeTrailer();
  void advance(std::size_t bytes);
  void drain();
  void endPayload();

  const TargetPins& pins_;
  Initiator& initiator_;
  Responder& responder_;
  Buffers& buffers_;
  std::unique_ptr<InBuffer> buffer_;
  State state_ = State::kHead;
  FrameHead head_;
  bool draining_ = false;
  std::size_t next_ = 0, pieces_ = 0;  // of buffer_->iov
  std::uint64_t left_ = 0;             // payload bytes
  std::size_t room_ = 0;
  std::size_t begin_ = 0, end_ = 0;  // of staging: come, and not yet looked at
  std::size_t ahead_ = 0;            // how much to read beyond a payload: the last head's length
};

}  // namespace viaduct::tcp
