#include "move/staging/staging_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "move/staging/staging_chunk.h"

namespace viaduct::move {
namespace {

// The most objects that one peer writes at the same time.
constexpr std::size_t kMostWholes = 1024;
// The most rings that one peer asks for at the same time: one for host memory, and one for each of
// 64 GPUs.
constexpr std::size_t kMostWanted = 65;

}  // namespace

void StagingServer::take(const RingRequest& request) {
  if (std::ranges::find(wanted_, request.place) == wanted_.end() && wanted_.size() < kMostWanted)
    wanted_.push_back(request.place);
}

void StagingServer::take(const RingReturn& given) {
  const auto found = lent_.find(given.place);
  if (found != lent_.end()) found->second.returned = true;
}

// The ring that the peer may use; null: it has none at this place.
const StagingRing* StagingServer::lent(RingPlace place) const {
  const auto found = lent_.find(place);
  return found == lent_.end() || found->second.returned ? nullptr : &found->second.ring;
}

void StagingServer::freeReturned() {
  const auto in_use = [this](RingPlace place) {
    return std::ranges::any_of(
        served_, [&](const Served& one) { return one.request && one.request->place == place; });
  };
  std::erase_if(lent_, [&](const auto& one) {
    const auto& [place, lent] = one;
    if (!lent.returned || in_use(place)) return false;
    host_.giveBack(lent.ring.pin);
    return true;
  });
}

void StagingServer::lendWanted() {
  std::erase_if(wanted_, [this](RingPlace place) {
    if (const StagingRing* const known = lent(place)) {
      answer(place, *known);
      return true;
    }
    if (lent_.contains(place)) return false;  // returned, and still in use
    auto ring = ring_(place);
    if (ring && !*ring) return false;
    if (ring) {
      lent_[place] = {.ring = **ring};
      served_.resize(std::max<std::size_t>(served_.size(), (*ring)->chunks));
    }
    answer(place, ring ? Result<StagingRing>(**ring) : std::move(ring).error());
    return true;
  });
}

void StagingServer::answer(RingPlace place, Result<StagingRing> ring) {
  RingAnswer answer{.place = place};
  if (ring) {
    answer.address = ring->address;
    answer.chunk_bytes = ring->chunk_bytes;
    answer.chunks = ring->chunks;
    answer.pin = ring->pin;
  } else {
    answer.error = std::move(ring).error();
  }
  static_cast<void>(send_(answer));  // a session that cannot send ends
}

Duration StagingServer::recall() {
  Duration kept{};
  for (auto& [place, lent] : lent_) {
    if (lent.returned) continue;
    if (lent.recalled)
      kept = std::max<Duration>(kept, host_.now() - *lent.recalled);
    else
      recall(place, lent);
  }
  return kept;
}

void StagingServer::recall(RingPlace place, LentRing& lent) {
  lent.recalled = host_.now();
  static_cast<void>(send_(RingRecall{place}));  // a session that cannot send ends
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
  const StagingRing* const ring = lent(request.place);
  if (ring == nullptr || request.chunk >= ring->chunks)
    return Error{
        .code = Code::kProtocol, .operation = "staging", .detail = "no such chunk was lent"};
  const bool packed = isPacked(request);
  const std::uint64_t ring_room = (ring->chunks - request.chunk) * ring->chunk_bytes;
  const std::uint64_t room = packed ? std::min(ring_room, kMostPacked) : ring_room;
  std::uint64_t used = 0;
  for (const StoragePiece& piece : request.pieces) {
    VIADUCT_CHECK(checkAccess(piece, request.store, packed));
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

// `packed`: the pieces of the request are in host memory. `store`: the request writes to them.
Status StagingServer::checkAccess(const StoragePiece& piece, bool store, bool packed) const {
  const PinInfo* const pin = host_.ownPin(piece.pin);
  const core::PinRight right = host_.peersRight(piece.pin);
  if (pin == nullptr || !right.any() || piece.generation != host_.ownGeneration(piece.pin) ||
      (pin->kind == MemoryKind::kHost) != packed || piece.address < pin->address ||
      piece.bytes > pin->bytes || piece.address - pin->address > pin->bytes - piece.bytes)
    return Error{.code = Code::kDenied,
                 .operation = "staging",
                 .detail = fmt::format("{} bytes at {:#x} are in no pinned memory of one kind",
                                       piece.bytes, piece.address),
                 .cause = "the pin was released, or its owner never had it"};
  if (store && pin->access == MemoryAccess::kReadOnly)
    return Error{.code = Code::kDenied,
                 .operation = "staging",
                 .detail = fmt::format("the pin at {:#x} is read-only", pin->address)};
  if (store ? !right.write : !right.read)
    return Error{.code = Code::kDenied,
                 .operation = "staging",
                 .detail = fmt::format("the Card does not grant {} the pin at {:#x}",
                                       store ? "writing to" : "reading from", pin->address),
                 .remedy = "ask the owner for a Card with that access"};
  return Ok{};
}

bool StagingServer::isPacked(const StorageRequest& request) const {
  if (request.pieces.empty()) return false;
  const PinInfo* const pin = host_.ownPin(request.pieces.front().pin);
  return pin != nullptr && pin->kind == MemoryKind::kHost;
}

// Maps the peer's number to a number of this agent, so that two peers never write one object
// together.
Status StagingServer::checkWhole(std::uint64_t whole) {
  if (whole == 0 || wholes_.contains(whole)) return Ok{};
  if (wholes_.size() == kMostWholes)
    return Error{.code = Code::kExhausted,
                 .operation = "staging",
                 .detail = fmt::format("the peer already writes {} objects", kMostWholes)};
  wholes_.emplace(whole, host_.newWhole());
  return Ok{};
}

void StagingServer::progress() {
  if (!lent_.empty()) freeReturned();
  if (!wanted_.empty()) lendWanted();
  bool copied = false;
  for (std::uint32_t i = 0; i < served_.size(); ++i) {
    if (served_[i].waits()) {
      const bool packed = isPacked(*served_[i].request);
      // Makes one packed copy in each progress(), so that other threads get the lock.
      if (!packed || !std::exchange(copied, true)) start(i);
    }
    if (served_[i].ended) answer(i);
  }
  if (copied) wake_();
}

void StagingServer::start(std::uint32_t number) {
  Served& one = served_[number];
  const StagingRing& ring = lent_.at(one.request->place).ring;
  std::vector<core::Op> ops;
  for (const StoragePiece& piece : one.request->pieces)
    ops.push_back({.local = ring.address + number * ring.chunk_bytes + piece.place,
                   .remote = piece.address,
                   .bytes = piece.bytes,
                   .local_pin = ring.pin,
                   .remote_pin = piece.pin});
  core::OpList list = listOf(std::move(ops));
  if (one.request->whole != 0) list.whole = wholes_.at(one.request->whole);
  // Pins may have gone since the request came.
  const bool packed = isPacked(*one.request);
  if (Status allowed = check(*one.request); !allowed) {
    one.ended = HopEnd{.error = std::move(allowed).error()};
    return;
  }
  auto hop = host_.start(packed ? StagingHost::To::kMemory : StagingHost::To::kStorage,
                         one.request->store ? OpKind::kWrite : OpKind::kRead, std::move(list), {},
                         *this, number);
  if (hop)
    one.hop = *std::move(hop);
  else
    one.ended = HopEnd{.error = std::move(hop).error()};
}

void StagingServer::hopEnded(std::uint32_t chunk, HopEnd end) {
  served_[chunk].ended = std::move(end);
  wake_();
}

// Returns the error without the names of this agent's files, objects and hosts. The peer knows the
// label of a pin that it may reach.
std::optional<Error> StagingServer::forPeer(std::optional<Error> why,
                                            const StorageRequest& request) const {
  if (!why) return why;
  why->file.clear();
  const auto& pieces = request.pieces;
  const PinInfo* const pin = pieces.empty() ? nullptr : host_.ownPin(pieces.front().pin);
  if (pin == nullptr || !host_.peersRight(pieces.front().pin).any()) return why;
  if (std::ranges::all_of(pieces,
                          [&](const StoragePiece& one) { return one.pin == pieces.front().pin; }))
    why->file = pin->label;
  if (pin->kind == MemoryKind::kObject) {
    why->operation = request.store ? "write an object" : "read an object";
    why->cause.clear();
  }
  return why;
}

void StagingServer::answer(std::uint32_t number) {
  Served done = std::exchange(served_[number], {});
  const auto ring = lent_.find(done.request->place);
  // The recall comes before the answer, so that the peer does not use the chunk again.
  if (done.ended->unsettled && ring != lent_.end() && !ring->second.recalled)
    recall(ring->first, ring->second);
  static_cast<void>(
      send_(StorageAnswer{.chunk = number,
                          .error = forPeer(std::move(done.ended->error), *done.request),
                          .shares = std::move(done.ended->shares)}));
  if (ring != lent_.end() && ring->second.returned) wake_();
}

void StagingServer::close() {
  served_.clear();
  wanted_.clear();
  for (const auto& [theirs, ours] : wholes_) host_.giveUp(ours);
  wholes_.clear();
}

}  // namespace viaduct::move
