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
  payload(frame_.trailer.data(), kTrailerBytes, kNoSlot);
}

}  // namespace viaduct::tcp
