#include "backends/tcp/inbound.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/prefetch.h"

namespace viaduct::tcp {

namespace {
// Bytes to read between two frames: enough for heads and small frames. Payload among these bytes is
// copied once more, so the number is small.
constexpr std::size_t kFirstRead = std::size_t{8} << 10U;
constexpr std::size_t kLeastAhead = 256;
constexpr std::size_t kMostAwaited = std::size_t{128} << 10U;
static_assert(kMaxHeadBytes + base::kTagBytes + kLeastAhead <= kStagingBytes);
}  // namespace

std::span<const iovec> Inbound::scatter() {
  if (!buffer_) buffer_ = buffers_.in.take();
  if (part_ == FramePart::kPayload) {
    if (!draining_ && head_.type == DataFrameType::kReadData && initiator_.answerUnwanted())
      drain();
    buffer_->iov[pieces_] = {buffer_->staging.data(), std::max(ahead_, kLeastAhead)};
    room_ = left_ + buffer_->iov[pieces_].iov_len;
    return std::span<const iovec>(buffer_->iov).subspan(next_, pieces_ + 1 - next_);
  }
  if (begin_ > 0) {
    const std::size_t kept = staged();
    std::memmove(buffer_->staging.data(), at(), kept);
    begin_ = 0;
    end_ = kept;
  }
  room_ = std::min(kStagingBytes - end_, std::max(ahead_, kFirstRead));
  buffer_->iov[0] = {buffer_->staging.data() + end_, room_};
  return std::span<const iovec>(buffer_->iov).first(1);
}

std::string_view Inbound::received(std::size_t bytes) {
  if (part_ == FramePart::kPayload) {
    const std::size_t part = std::min<std::uint64_t>(bytes, left_);
    advance(part);
    bytes -= part;
  }
  end_ += bytes;
  return takeStaged();
}

// Skips `bytes` of the payload that have arrived at their place.
void Inbound::advance(std::size_t bytes) {
  left_ -= bytes;
  for (; next_ < pieces_; ++next_) {
    iovec& piece = buffer_->iov[next_];
    const std::size_t part = std::min(bytes, piece.iov_len);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + part;
    piece.iov_len -= part;
    bytes -= part;
    if (piece.iov_len > 0) return;
  }
  if (left_ == 0) endPayload();
}

std::string_view Inbound::takeStaged() {
  std::string_view wrong;
  bool more = true;
  while (more && wrong.empty()) {
    if (part_ == FramePart::kHead)
      more = takeFrame(wrong);
    else
      more = part_ == FramePart::kPayload ? takePayload() : takeTrailer(wrong);
  }
  if (begin_ == end_) begin_ = end_ = 0;
  return wrong;
}

// Staged bytes that are still missing from the head, entries or trailer in progress.
std::size_t Inbound::missing() const {
  if (part_ == FramePart::kTrailer) return kTrailerBytes - staged();
  return (staged() < kHeadBytes ? kHeadBytes : ahead_) - staged();
}

// The bytes in CheckedCopy::room() are proven. Payload goes from there to its place, and only
// heads, entries and trailers are staged.
std::string_view Inbound::takeRoom(std::size_t bytes) {
  if (!buffer_) buffer_ = buffers_.in.take();
  std::string_view wrong;
  for (std::size_t from = 0; from < bytes && wrong.empty();) {
    std::size_t part = bytes - from;
    if (part_ == FramePart::kPayload) {
      if (!draining_ && head_.type == DataFrameType::kReadData && initiator_.answerUnwanted())
        drain();
      part = std::min<std::uint64_t>(part, left_);
      const auto copy = [&](std::span<const iovec> to) { return buffers_.copy.fill(to, from); };
      if (!draining_ && !place(part, copy)) faulted();
      advance(part);
    } else {
      part = std::min(part, missing());
      std::memcpy(buffer_->staging.data() + end_, buffers_.copy.room().data() + from, part);
      end_ += part;
      wrong = takeStaged();
    }
    from += part;
  }
  return wrong;
}

// takeFrame(), takePayload() and takeTrailer() interpret staged bytes. False: too few are staged.
bool Inbound::takeFrame(std::string_view& wrong) {
  if (!frameIsWhole(wrong)) return false;
  const std::span said(at(), kHeadBytes + head_.entries * kEntryBytes);
  begin_ += said.size() + tagBytes();
  if (keys_ != nullptr && !keys_->open(said, {}, nullptr, said.data() + said.size()))
    wrong = kNotGenuine;
  else
    wrong = beginFrame(said.subspan(kHeadBytes));
  return true;
}

bool Inbound::takePayload() {
  const std::size_t part = std::min<std::uint64_t>(staged(), left_);
  if (part == 0) return false;
  const auto copy = [this](std::span<const iovec> to) { return buffers_.copy.copy(to, at()); };
  if (!draining_ && !place(part, copy)) faulted();
  begin_ += part;
  advance(part);
  return true;
}

// Has `copy` fill the places of the payload's next bytes. False: that memory is not writable.
template <class Copy>
bool Inbound::place(std::size_t bytes, Copy copy) {
  std::size_t last = next_;
  for (; buffer_->iov[last].iov_len < bytes; ++last) bytes -= buffer_->iov[last].iov_len;
  const std::size_t whole = std::exchange(buffer_->iov[last].iov_len, bytes);
  const auto pieces = std::span<const iovec>(buffer_->iov).subspan(next_, last + 1 - next_);
  const bool placed = copy(pieces);
  buffer_->iov[last].iov_len = whole;
  return placed;
}

bool Inbound::takeTrailer(std::string_view& wrong) {
  if (staged() < kTrailerBytes + tagBytes()) return false;
  const auto status = base::loadLittle<std::uint32_t>(at());
  if (keys_ != nullptr) {
    const std::uint64_t number = keys_->reserve(kStatuses);
    if (status >= kStatuses ||
        !keys_->openAt(number + status, {at(), kTrailerBytes}, at() + kTrailerBytes))
      wrong = kNotGenuine;
    if (!wrong.empty()) return false;
  }
  begin_ += kTrailerBytes + tagBytes();
  part_ = FramePart::kHead;
  initiator_.answerEnds(status == 0 ? FrameStatus::kOk : FrameStatus::kDenied, !draining_);
  return true;
}

// Whether a head and all its entries are staged. Decodes the head into head_.
bool Inbound::frameIsWhole(std::string_view& wrong) {
  if (staged() < kHeadBytes) return false;
  wrong = decodeHead(std::span<const std::byte, kHeadBytes>(at(), kHeadBytes), head_);
  if (!wrong.empty()) return false;
  const std::size_t need = kHeadBytes + head_.entries * kEntryBytes + tagBytes();
  ahead_ = need;
  return staged() >= need;
}

std::string_view Inbound::beginFrame(std::span<const std::byte> entries) {
  if (const auto wrong = checkEntries(head_, entries); !wrong.empty()) return wrong;
  switch (head_.type) {
    case DataFrameType::kWrite:
      return beginWrite(entries);
    case DataFrameType::kReadRequest:
      return responder_.asked(head_, entries);
    case DataFrameType::kReadData:
      return beginAnswer();
    case DataFrameType::kAck:
      return initiator_.acked(head_.sequence);
    case DataFrameType::kFail:
      return initiator_.refused(head_.sequence);
    case DataFrameType::kCancel:
      return responder_.withdrawn(head_.sequence);
  }
  return "an unknown frame type";
}

std::string_view Inbound::beginAnswer() {
  const auto wrong = initiator_.answerBegins(head_, *buffer_, pieces_);
  if (!wrong.empty()) return wrong;
  next_ = 0;
  left_ = head_.payload;
  draining_ = false;
  part_ = left_ > 0 ? FramePart::kPayload : FramePart::kTrailer;
  if (pieces_ == 0) drain();
  return "";
}

// Checks all entries before any byte is stored. One bad entry refuses the whole frame.
std::string_view Inbound::beginWrite(std::span<const std::byte> entries) {
  if (const auto wrong = responder_.writeBegins(head_.sequence); !wrong.empty()) return wrong;
  next_ = 0;
  pieces_ = 0;
  left_ = head_.payload;
  draining_ = false;
  part_ = FramePart::kPayload;
  for (std::size_t at = 0; at < entries.size(); at += kEntryBytes) {
    const FrameEntry entry = decodeEntry(entries.data() + at);
    std::byte* const place = responder_.writable(entry);
    if (place == nullptr) {
      drain();
      break;
    }
    base::willWrite(place);
    buffer_->slot[pieces_] = entry.slot;
    buffer_->iov[pieces_++] = {place, entry.bytes};
  }
  return "";
}

void Inbound::drain() {
  draining_ = true;
  next_ = 0;
  pieces_ = 0;
  for (std::uint64_t left = left_; left > 0;) {
    const std::size_t part = std::min<std::uint64_t>(left, kScrapBytes);
    buffer_->iov[pieces_++] = {buffers_.scrap->data(), part};
    left -= part;
  }
}

void Inbound::endPayload() {
  if (head_.type == DataFrameType::kReadData) {
    part_ = FramePart::kTrailer;
    return;
  }
  part_ = FramePart::kHead;
  responder_.writeEnds(draining_ ? FrameStatus::kDenied : FrameStatus::kOk);
}

void Inbound::dropSlot(std::uint32_t slot) {
  if (part_ != FramePart::kPayload || draining_) return;
  for (std::size_t i = next_; i < pieces_; ++i)
    if (buffer_->slot[i] == slot) return drain();
}

bool Inbound::faulted() {
  if (part_ != FramePart::kPayload || draining_) return false;
  const std::uint32_t slot = buffer_->slot[next_];
  if (head_.type == DataFrameType::kReadData)
    initiator_.answerFaulted(slot);
  else
    responder_.faulted(slot);
  drain();
  return true;
}

void Inbound::rest() {
  if (part_ == FramePart::kHead && staged() == 0) buffers_.in.give(std::move(buffer_));
}

// Waits for half of the missing bytes, so that little is left to copy when the last byte arrives.
std::size_t Inbound::worthwhile() const {
  if (part_ != FramePart::kPayload || left_ < kMostAwaited) return 1;
  return std::min<std::size_t>(left_ / 2, kMostAwaited);
}

void Inbound::clear() {
  buffers_.in.give(std::move(buffer_));
  part_ = FramePart::kHead;
  begin_ = end_ = 0;
}

}  // namespace viaduct::tcp
