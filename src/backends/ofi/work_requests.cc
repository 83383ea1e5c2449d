#include "backends/ofi/work_requests.h"

#include <algorithm>
#include <utility>

namespace viaduct::ofi {

using move::Flush;
using move::Piece;
using move::Posted;

namespace {

// The length of settle()'s request, which repeats the front of a piece.
constexpr std::uint64_t kClosing = 8;

void* descriptorOf(const move::Registration* local) {
  return local == nullptr ? nullptr : static_cast<const RegisteredMemory*>(local)->descriptor();
}

}  // namespace

WorkRequests::WorkRequests(const EndpointProfile& profile, fid_ep& endpoint, fi_addr_t peer)
    : profile_(profile),
      endpoint_(endpoint),
      peer_(peer),
      inject_(profile.inject),
      contexts_(profile.depth) {
  for (RequestContext& one : contexts_) free_.push_back(&one);
}

// FI_DELIVERY_COMPLETE: over TCP a plain completion says only that the bytes have left the buffer.
std::int64_t WorkRequests::give(OpKind kind, const Piece& piece, const RemoteMemory& there,
                                How how) {
  const iovec here{.iov_base = piece.here, .iov_len = piece.bytes};
  const fi_rma_iov target{.addr = piece.there - there.base, .len = piece.bytes, .key = there.key};
  void* descriptor = descriptorOf(piece.local);
  const fi_msg_rma message{.msg_iov = &here,
                           .desc = &descriptor,
                           .iov_count = 1,
                           .addr = peer_,
                           .rma_iov = &target,
                           .rma_iov_count = 1,
                           .context = how.tells ? free_.back() : nullptr,
                           .data = 0};
  std::uint64_t flags = profile_.doorbell && !how.last ? FI_MORE : 0;
  if (how.inject) flags |= FI_INJECT;
  if (how.tells) flags |= FI_COMPLETION;
  if (kind == OpKind::kRead) return fi_readmsg(&endpoint_, &message, flags);
  if (how.tells) flags |= FI_DELIVERY_COMPLETE;
  return fi_writemsg(&endpoint_, &message, flags);
}

// Posts one request. False: the provider does not accept it now, or never (refusal_).
bool WorkRequests::request(OpKind kind, const Piece& piece, const RemoteMemory& there, How how,
                           FlushSlot* slot) {
  std::int64_t given = give(kind, piece, there, how);
  if (given != 0 && given != -FI_EAGAIN && how.inject) {
    inject_ = 0;  // a provider that injects messages may not inject RMA writes
    how.inject = false;
    given = give(kind, piece, there, how);
  }
  if (given != 0) {
    if (given != -FI_EAGAIN) refusal_ = given;
    return false;
  }
  ++under_way_;
  ++untold_;
  if (!how.tells) return true;
  *free_.back() = {.slot = slot, .covers = std::exchange(untold_, 0)};
  free_.pop_back();
  return true;
}

Posted WorkRequests::post(OpKind kind, std::span<const Piece> pieces, const RemoteMemory& there) {
  Posted out;
  if (refusal_ != 0 || !settle()) return out;
  // One place stays free for settle().
  const std::size_t room = profile_.depth - 1 - std::min(under_way_, profile_.depth - 1);
  const std::size_t count = std::min(pieces.size(), room);
  const bool all_tell = kind == OpKind::kRead || !profile_.ordered;
  bool told = true;
  while (out.pieces < count) {
    const Piece& piece = pieces[out.pieces];
    const bool last = out.pieces + 1 == count;
    const How how{.tells = all_tell || last, .last = last, .inject = injects(kind, piece.bytes)};
    if (!request(kind, piece, there, how, &slot())) break;
    told = how.tells;
    slot().requests += told ? 1 : 0;
    out.injected += injects(kind, piece.bytes) ? 1 : 0;
    ++out.pieces;
  }
  const bool open = profile_.doorbell || !told;
  if (out.pieces > 0 && out.pieces < count && open) {
    Piece front = pieces[out.pieces - 1];
    front.bytes = std::min(front.bytes, kClosing);
    owed_ = {.yes = true, .kind = kind, .piece = front, .there = there, .slot = &slot()};
    ++slot().requests;
    settle();
  }
  return out;
}

bool WorkRequests::settle() {
  if (!owed_.yes) return true;
  const How how{.tells = true, .last = true, .inject = injects(owed_.kind, owed_.piece.bytes)};
  if (refusal_ != 0 || !request(owed_.kind, owed_.piece, owed_.there, how, owed_.slot))
    return false;
  owed_.yes = false;
  return true;
}

void WorkRequests::ended(void* context) {
  auto* const request = static_cast<RequestContext*>(context);
  if (request == nullptr) return;
  --request->slot->requests;
  under_way_ -= request->covers;
  free_.push_back(request);
}

Flush WorkRequests::flush() {
  FlushSlot& mine = slot();
  if (first_ == last_ && mine.requests == 0) return {};
  ++mine.holders;
  // If a flush still holds the next slot, later requests go into this slot too.
  if (FlushSlot& next = slots_[(last_ + 1) % kSlots];
      last_ + 1 - first_ < kSlots && next.holders == 0) {
    ++last_;
    next = {.number = last_};
  }
  return {&mine};
}

bool WorkRequests::over(const Flush& flush) {
  while (first_ != last_ && slots_[first_ % kSlots].requests == 0) ++first_;
  const auto* const mine = static_cast<const FlushSlot*>(flush.request);
  return mine == nullptr || mine->number < first_ || (first_ == last_ && mine->requests == 0);
}

void WorkRequests::letGo(Flush& flush) {
  if (flush.request != nullptr) --static_cast<FlushSlot*>(flush.request)->holders;
  flush.request = nullptr;
}

}  // namespace viaduct::ofi
