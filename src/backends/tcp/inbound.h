// The receiving side of a socket. scatter() returns the places for the next bytes, and received()
// interprets them. The class itself does no system calls on the socket. Threads: those of the
// channel's rail.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backends/tcp/initiator.h"
#include "backends/tcp/responder.h"

namespace viaduct::tcp {

// The mistake of a frame or record whose tag is wrong.
inline constexpr std::string_view kNotGenuine =
    "data with a wrong authentication code: it was changed, lost, repeated or moved on its way";

class Inbound {
 public:
  // If `keys` is not null, heads and trailers of frames have tags.
  Inbound(Initiator& initiator, Responder& responder, Buffers& buffers,
          base::RecordKeys* keys = nullptr)
      : initiator_(initiator), responder_(responder), buffers_(buffers), keys_(keys) {}

  std::span<const iovec> scatter();
  std::size_t room() const { return room_; }  // bytes that the last scatter() had room for
  // Takes in that many received bytes. Returns the peer's mistake, or an empty text.
  std::string_view received(std::size_t bytes);
  // If the socket carries sealed records (records.h), call this instead of scatter() and
  // received(). Takes in the first `bytes` bytes of buffers_.copy.room(), where RecordReader has
  // put the opened bytes.
  std::string_view takeRoom(std::size_t bytes);
  // Stops writing to this local pin. The rest of a frame that names it goes to the scrap buffer.
  void dropSlot(std::uint32_t slot);
  // Call it after EFAULT: pinned memory was unmapped or protected. The rest of the frame goes to
  // the scrap buffer. False: no pinned memory was to be written, so the cause is another.
  bool faulted();
  // Returns the buffer to the pool, unless a frame is in progress.
  void rest();
  // The number of received bytes that should wake the channel. During a long payload it is more
  // than one packet.
  std::size_t worthwhile() const;
  void clear();

 private:
  enum class FramePart : std::uint8_t { kHead, kPayload, kTrailer };
  std::size_t staged() const { return end_ - begin_; }
  const std::byte* at() const { return buffer_->staging.data() + begin_; }
  bool frameIsWhole(std::string_view& wrong);
  std::string_view beginFrame(std::span<const std::byte> entries);
  std::string_view beginWrite(std::span<const std::byte> entries);
  std::string_view beginAnswer();
  std::string_view takeStaged();
  std::size_t missing() const;
  std::size_t tagBytes() const { return keys_ == nullptr ? 0 : base::kTagBytes; }
  bool takeFrame(std::string_view& wrong);
  bool takePayload();
  template <class Copy>
  bool place(std::size_t bytes, Copy copy);
  bool takeTrailer(std::string_view& wrong);
  void advance(std::size_t bytes);
  void drain();
  void endPayload();

  Initiator& initiator_;
  Responder& responder_;
  Buffers& buffers_;
  base::RecordKeys* const keys_;
  std::unique_ptr<InBuffer> buffer_;
  FramePart part_ = FramePart::kHead;
  FrameHead head_;
  bool draining_ = false;
  std::size_t next_ = 0, pieces_ = 0;  // first unfilled entry, and end, in buffer_->iov
  std::uint64_t left_ = 0;             // payload bytes that have not arrived yet
  std::size_t room_ = 0;
  std::size_t begin_ = 0, end_ = 0;  // received bytes in `staging` that are not interpreted yet
  std::size_t ahead_ =
      0;  // bytes to read beyond a payload: the length of the last head and entries
};

}  // namespace viaduct::tcp
