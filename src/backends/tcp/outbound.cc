#include "backends/tcp/outbound.h"

#include <algorithm>
#include <utility>

namespace viaduct::tcp {

bool Outbound::compose() {
  frame_ = buffers_.out.take();
  next_ = 0;
  FrameWriter writer(*frame_, keys_);
  responder_.control(writer);
  initiator_.control(writer);
  // Our frames and answers to the peer take turns, so that neither starves the other.
  answers_first_ = !answers_first_;
  if (answers_first_) {
    if (!responder_.compose(writer)) initiator_.compose(writer);
  } else {
    if (!initiator_.compose(writer)) responder_.compose(writer);
  }
  if (writer.close()) return true;
  buffers_.out.give(std::move(frame_));
  return false;
}

std::span<const iovec> Outbound::gather() {
  if (!frame_ && (!wants() || !compose())) return {};
  return std::span<const iovec>(frame_->iov).subspan(next_, frame_->pieces - next_);
}

bool Outbound::sent(std::size_t bytes) {
  for (; next_ < frame_->pieces; ++next_) {
    iovec& piece = frame_->iov[next_];
    const std::size_t part = std::min(bytes, piece.iov_len);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + part;
    piece.iov_len -= part;
    bytes -= part;
    if (piece.iov_len > 0) return false;
  }
  initiator_.sent(frame_->kind);
  buffers_.out.give(std::move(frame_));
  return true;
}

// Replaces the unsent pieces of the selected pins by zeros, and lets an answer with such pieces end
// as refused. True if there was such a piece.
template <class Which>
bool Outbound::blank(Which which) {
  bool hit = false;
  for (std::size_t i = std::max<std::size_t>(next_, 1); i < frame_->pieces; ++i)
    if (frame_->slot[i] != FrameWriter::kNoSlot && which(frame_->slot[i])) {
      frame_->iov[i].iov_base = const_cast<std::byte*>(zeros());
      hit = true;
    }
  if (hit && frame_->kind == OutFrame::FrameKind::kAnswer)
    FrameWriter::restate(*frame_, FrameStatus::kDenied, keys_);
  return hit;
}

void Outbound::dropSlot(std::uint32_t slot) {
  if (frame_) blank([slot](std::uint32_t other) { return other == slot; });
}

bool Outbound::faulted() {
  if (!frame_) return false;
  const std::uint32_t slot = frame_->slot[std::max<std::size_t>(next_, 1)];
  if (!blank([](std::uint32_t) { return true; })) return false;
  if (frame_->kind == OutFrame::FrameKind::kAnswer)
    responder_.faulted(slot);
  else
    initiator_.writeFaulted(slot);
  return true;
}

void Outbound::clear() { buffers_.out.give(std::move(frame_)); }

}  // namespace viaduct::tcp
