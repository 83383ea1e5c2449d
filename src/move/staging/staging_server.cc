#include "move/staging/staging_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "move/staging/staging_chunk.h"

namespace viaduct::move {
namespace {

// Objects that one peer writes at the same time.
constexpr std::size_t kMostWholes = 1024;

}  // namespace

void StagingServer::take(const RingRequest& request) {
  RingAnswer answer{.place = request.place};
  const auto known = lent_.find(request.place);
  auto ring = known != lent_.end() ? Result<Ring>(known->second) : host_.ring(request.place);
  if (ring) {
    lent_[request.place] = *ring;
    served_.resize(std::max<std::size_t>(served_.size(), ring->chunks));
    answer = {.place = request.place,
              .address = ring->address,
              .chunk_bytes = ring->chunk_bytes,
              .chunks = ring->chunks,
              .pin = ring->pin};
  } else {
    answer.error = std::move(ring).error();
  }
  static_cast<void>(send_(answer));  // a session that cannot send ends
}

void StagingServer::take(StorageRequest&& request) {
  if (request.chunk >= served_.size() || served_[request.chunk].request) return;
  Served& one = served_[request.chunk];
  one = {};
  Status allowed = check(request);
  if (allowed) allowed = checkWhole(request.whole);
  one.request = std::move(request);
  if (!allowed) one.ended = HopEnd{.error = allowed.error()};
}

void StagingServer::take(const StorageCancel& cancel) {
  if (cancel.chunk >= served_.size()) return;
  Served& one = served_[cancel.chunk];
  if (!one.request || one.ended) return;
  if (one.hop)
    one.hop->cancel();
  else
    one.ended = HopEnd{.error = Error{.code = Code::kCancelled, .operation = "staging"}};
}

void StagingServer::take(const WholeEnd& end) {
  const auto known = wholes_.find(end.whole);
  if (known == wholes_.end()) return;
  host_.giveUp(known->second);
  wholes_.erase(known);
}

// A peer reaches only pinned storage, with the access of its pin, and only its own chunks.
Status StagingServer::check(const StorageRequest& request) const {
  const auto lent = lent_.find(request.place);
  if (lent == lent_.end() || request.chunk >= lent->second.chunks)
    return Error{
        .code = Code::kProtocol, .operation = "staging", .detail = "no such chunk was lent"};
  const Ring& ring = lent->second;
  const bool packed = isPacked(request);
  const std::uint64_t ring_room = (ring.chunks - request.chunk) * ring.chunk_bytes;
  const std::uint64_t room = packed ? std::min(ring_room, kMostPacked) : ring_room;
  std::uint64_t used = 0;
  for (const StoragePiece& piece : request.pieces) {
    const PinInfo* const pin = host_.ownPin(piece.pin);
    if (pin == nullptr || (pin->kind == MemoryKind::kHost) != packed ||
        piece.address < pin->address || piece.bytes > pin->bytes ||
        piece.address - pin->address > pin->bytes - piece.bytes)
      return Error{.code = Code::kDenied,
                   .operation = "staging",
                   .detail = fmt::format("{} bytes at {:#x} are in no pinned memory of one kind",
                                         piece.bytes, piece.address),
                   .cause = "the pin was released, or its owner never had it"};
    if (request.store && pin->access == MemoryAccess::kReadOnly)
      return Error{.code = Code::kDenied,
                   .operation = "staging",
                   .detail = fmt::format("the pin at {:#x} is read-only", pin->address)};
    // In order and without overlap, so that one request moves no more than its room.
    if (piece.bytes > room || piece.place > room - piece.bytes || piece.place < used)
      return Error{.code = Code::kProtocol,
                   .operation = "staging",
                   .detail = fmt::format("a piece of {} bytes at {} lies outside of the {} bytes "
                                         "behind the piece before",
                                         piece.bytes, piece.place, room - used)};
    used = piece.place + piece.bytes;
  }
  return Ok{};
}

bool StagingServer::isPacked(const StorageRequest& request) const {
  if (request.pieces.empty()) return false;
  const PinInfo* const pin = host_.ownPin(request.pieces.front().pin);
  return pin != nullptr && pin->kind == MemoryKind::kHost;
}

// Gives the peer's number one of this agent's numbers, so that peers cannot meet in one object.
Status StagingServer::checkWhole(std::uint64_t whole) {
  if (whole == 0 || wholes_.contains(whole)) return Ok{};
  if (wholes_.size() == kMostWholes)
    return Error{.code = Code::kExhausted,
                 .operation = "staging",
                 .detail = fmt::format("the peer already writes {} objects", kMostWholes)};
  wholes_.emplace(whole, host_.newWhole());
  return Ok{};
}

bool StagingServer::waits() const {
  return std::any_of(served_.begin(), served_.end(), [](const Served& one) { return one.waits(); });
}

void StagingServer::progress() {
  bool copied = false;
  for (std::uint32_t i = 0; i < served_.size(); ++i) {
    if (served_[i].waits()) {
      const bool packed = isPacked(*served_[i].request);
      // One copy in each round, so that other threads get the lock.
      if (packed ? !std::exchange(copied, true) : host_.reachesStorage()) start(i);
    }
    if (served_[i].ended) answer(i);
  }
  if (copied) wake_();
}

void StagingServer::start(std::uint32_t number) {
  Served& one = served_[number];
  const Ring& ring = lent_.at(one.request->place);
  std::vector<core::Op> ops;
  for (const StoragePiece& piece : one.request->pieces)
    ops.push_back({.local = ring.address + number * ring.chunk_bytes + piece.place,
                   .remote = piece.address,
                   .bytes = piece.bytes,
                   .local_pin = ring.pin,
                   .remote_pin = piece.pin});
  core::OpList list = listOf(std::move(ops));
  if (one.request->whole != 0) list.whole = wholes_.at(one.request->whole);
  // Pins of memory may have gone since the request came.
  const bool packed = isPacked(*one.request);
  if (Status allowed = packed ? check(*one.request) : Status(Ok{}); !allowed) {
    one.ended = HopEnd{.error = std::move(allowed).error()};
    return;
  }
  auto hop = host_.start(packed ? StagingHost::To::kMemory : StagingHost::To::kStorage,
                         one.request->store ? OpKind::kWrite : OpKind::kRead, std::move(list), {},
                         [this, number](HopEnd end) {
                           served_[number].ended = std::move(end);
                           wake_();
                         });
  if (hop)
    one.hop = *std::move(hop);
  else
    one.ended = HopEnd{.error = std::move(hop).error()};
}

void StagingServer::answer(std::uint32_t number) {
  Served done = std::exchange(served_[number], {});
  static_cast<void>(send_(StorageAnswer{.chunk = number,
                                        .error = std::move(done.ended->error),
                                        .shares = std::move(done.ended->shares)}));
}

void StagingServer::close() {
  served_.clear();
  for (const auto& [theirs, ours] : wholes_) host_.giveUp(ours);
  wholes_.clear();
}

}  // namespace viaduct::move
