// The messages between the two ends of a staging link, which go over the session. Threads: pure
// functions and values.
#pragma once

#include <viaduct/path.h>
#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/fields.h"
#include "base/path_fields.h"

namespace viaduct::move {

// The most pieces of one chunk, so that a request fits into a frame of the session.
inline constexpr std::size_t kMostPieces = 1024;
// The most rails that the answers of one peer may name, because Transfer::path() lists them all.
inline constexpr std::size_t kMostShares = 128;
// A copy of this many bytes to or from packed pieces takes the lock for about 100 us.
inline constexpr std::uint64_t kMostPacked = std::uint64_t{512} << 10U;

// A ring's GPU, by its number at its owner. None: host memory.
using RingPlace = std::optional<std::uint32_t>;

// Asks for the ring that the other end lends to the sender.
struct RingRequest {
  static constexpr std::string_view kName = "request for a ring";
  RingPlace place = {};
};
// Lends a ring: the sender's ring, or the reason why there is none.
struct RingAnswer {
  static constexpr std::string_view kName = "lent ring";
  RingPlace place = {};
  std::uint64_t address = 0, chunk_bytes = 0;
  std::uint32_t chunks = 0, pin = 0;
  std::optional<Error> error = {};
};
// A part of a storage pin, and its place in the chunk.
struct StoragePiece {
  std::uint32_t pin = 0;
  std::uint32_t place = 0;  // offset in the chunk
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t generation = 0;  // of the pin, because a later pin may get its number
};
// Asks the other end to read its storage into a chunk of the lent ring, or to write a chunk to its
// storage.
struct StorageRequest {
  static constexpr std::string_view kName = "storage request";
  RingPlace place = {};
  std::uint32_t chunk = 0;
  bool store = false;
  std::uint64_t whole = 0;  // as core::OpList::whole: the sender's number
  std::vector<StoragePiece> pieces = {};
};
// The end of the StorageRequest for this chunk.
struct StorageAnswer {
  static constexpr std::string_view kName = "storage answer";
  std::uint32_t chunk = 0;
  std::optional<Error> error = {};
  std::vector<PathShare> shares = {};
};
// Asks the other end to end the StorageRequest for this chunk soon. Its answer still comes.
struct StorageCancel {
  static constexpr std::string_view kName = "storage cancel";
  std::uint32_t chunk = 0;
};
// No further StorageRequest has this number.
struct WholeEnd {
  static constexpr std::string_view kName = "end of a whole object";
  std::uint64_t whole = 0;
};

// The sender wants the ring back that it has lent, because others wait for its memory. Sent only to
// a peer whose StagingBackend::address() says that it knows the message.
struct RingRecall {
  static constexpr std::string_view kName = "ring recall";
  RingPlace place = {};
};
// The sender uses the lent ring no more. It may ask for another one.
struct RingReturn {
  static constexpr std::string_view kName = "ring return";
  RingPlace place = {};
};

auto fields(base::Is<RingRequest> auto& m) { return std::tie(m.place); }
auto fields(base::Is<RingAnswer> auto& m) {
  return std::tie(m.place, m.address, m.chunk_bytes, m.chunks, m.pin, m.error);
}
auto fields(base::Is<StoragePiece> auto& m) {
  return std::tie(m.pin, m.place, m.address, m.bytes, m.generation);
}
auto fields(base::Is<StorageRequest> auto& m) {
  return base::list(m.place, m.chunk, m.store, m.whole, base::atMost(kMostPieces, m.pieces));
}
auto fields(base::Is<StorageAnswer> auto& m) {
  return base::list(m.chunk, m.error, base::atMost(kMostShares, m.shares));
}
auto fields(base::Is<StorageCancel> auto& m) { return std::tie(m.chunk); }
auto fields(base::Is<WholeEnd> auto& m) { return std::tie(m.whole); }
auto fields(base::Is<RingRecall> auto& m) { return std::tie(m.place); }
auto fields(base::Is<RingReturn> auto& m) { return std::tie(m.place); }

using StagingMessage = std::variant<RingRequest, RingAnswer, StorageRequest, StorageAnswer,
                                    StorageCancel, WholeEnd, RingRecall, RingReturn>;

base::Bytes encode(const StagingMessage& message);
// Refuses bytes that are truncated, too long or beyond the limits: kProtocol. Refuses bytes of
// another version or kind: kUnsupported.
Result<StagingMessage> decodeStaging(std::span<const std::byte> bytes);

}  // namespace viaduct::move
