#include "backends/tcp/frame_writer.h"

#include "base/bytes.h"

namespace viaduct::tcp {

const std::byte* zeros() {
  // Not const, so that it lies in .bss and takes no room in the file. Nobody writes it, so it takes
  // no memory either.
  static std::array<std::byte, kMaxFrameBytes> nothing;
  return nothing.data();
}

void FrameWriter::trailer(FrameStatus status) {
  base::storeLittle(frame_.trailer.data(), static_cast<std::uint32_t>(status));
  payload(frame_.trailer.data(), kTrailerBytes + (keys_ == nullptr ? 0 : base::kTagBytes), kNoSlot);
}

// A tag that could not be made is wrong, and ends the link at the other end.
void FrameWriter::tag(std::byte* from) {
  std::byte* const end = frame_.head.data() + frame_.head_bytes;
  static_cast<void>(keys_->seal({from, end}, {}, nullptr, end));
  frame_.head_bytes += base::kTagBytes;
}

void FrameWriter::tagTrailer() {
  frame_.trailer_number = keys_->reserve(kStatuses);
  const auto status = base::loadLittle<std::uint32_t>(frame_.trailer.data());
  restate(frame_, static_cast<FrameStatus>(status), keys_);
}

// Each status has a nonce of its own, so that no nonce seals two statuses.
void FrameWriter::restate(OutFrame& frame, FrameStatus status, base::RecordKeys* keys) {
  std::byte* const at = frame.trailer.data();
  base::storeLittle(at, static_cast<std::uint32_t>(status));
  if (keys != nullptr)
    static_cast<void>(keys->sealAt(frame.trailer_number + static_cast<std::uint64_t>(status),
                                   {at, kTrailerBytes}, at + kTrailerBytes));
}

}  // namespace viaduct::tcp
