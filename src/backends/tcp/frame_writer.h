// Fills an OutFrame: control frames first, then entries and payload, then the head that describes
// them. Threads: one at a time.
#pragma once

#include "backends/tcp/buffers.h"
#include "base/prefetch.h"

namespace viaduct::tcp {

// Zeros that are sent in place of memory that was withdrawn in the middle of a frame.
const std::byte* zeros();

class FrameWriter {
 public:
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;

  // If `keys` is not null, each head and trailer gets a tag.
  explicit FrameWriter(OutFrame& frame, base::RecordKeys* keys = nullptr)
      : frame_(frame), keys_(keys) {
    frame_.kind = OutFrame::FrameKind::kControl;
    frame_.head_bytes = 0;
    frame_.pieces = 1;
  }
  bool roomForControl() const { return frame_.head_bytes < kMaxControl * kHeadBytes; }
  void control(const FrameHead& head) {
    std::byte* const at = frame_.head.data() + frame_.head_bytes;
    encodeHead(head, at);
    frame_.head_bytes += kHeadBytes;
    if (keys_ != nullptr) tag(at);
  }
  // The data frame: call begin(), then add entries and payload, then call end().
  void begin() {
    main_ = frame_.head_bytes;
    frame_.head_bytes += kHeadBytes;
  }
  void undoBegin() { frame_.head_bytes = main_; }
  void entry(const FrameEntry& entry) {
    encodeEntry(entry, frame_.head.data() + frame_.head_bytes);
    frame_.head_bytes += kEntryBytes;
  }
  void payload(std::byte* from, std::size_t bytes, std::uint32_t slot) {
    base::willRead(from);
    frame_.slot[frame_.pieces] = slot;
    frame_.iov[frame_.pieces++] = {from, bytes};
  }
  void trailer(FrameStatus status);
  void end(OutFrame::FrameKind kind, const FrameHead& head) {
    frame_.kind = kind;
    encodeHead(head, frame_.head.data() + main_);
    if (keys_ == nullptr) return;
    tag(frame_.head.data() + main_);
    if (kind == OutFrame::FrameKind::kAnswer) tagTrailer();
  }
  // Changes the status of an answer whose trailer has not been sent.
  static void restate(OutFrame& frame, FrameStatus status, base::RecordKeys* keys);
  // True if the frame has anything to send.
  bool close() {
    frame_.iov[0] = {frame_.head.data(), frame_.head_bytes};
    frame_.slot[0] = kNoSlot;
    return frame_.head_bytes > 0;
  }

 private:
  void tag(std::byte* from);  // of all bytes of the head from `from` on
  void tagTrailer();

  OutFrame& frame_;
  base::RecordKeys* const keys_;
  std::size_t main_ = 0;
};

}  // namespace viaduct::tcp
